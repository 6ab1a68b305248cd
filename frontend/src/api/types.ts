export interface CurvePoint {
  x: number;
  ns_min: number | null;
  ns_p10: number | null;
  ns_p50: number | null;
  ns_p90: number | null;
  ns_mad: number | null;
  batches: number | null;
  dropped: number | null;
}
export interface RunCurve {
  section: string;
  name: string;
  x_name: string;
  backing: string;
  backing_kind: string | null;
  page_bytes: number | null;
  layout: string | null;
  granted_fraction: number | null;
  status: string;
  reason: string | null;
  points: CurvePoint[];
}
export interface TlbLevel {
  level: number;
  kind: string;
  page_bytes: number;
  entries: number | null;
  entries_min: number | null;
  entries_max: number | null;
  ways: number | string | null;
  source: string | null;
  confidence: string | null;
  note: string | null;
}
export interface Granule {
  backing: string;
  backing_kind: string | null;
  page_bytes: number;
  granule_bytes: number | null;
  status: string;
}
export interface Penalty {
  level: string;
  page_bytes: number;
  ns: number | null;
  ns_min: number | null;
  ns_max: number | null;
  cycles: number | null;
}
export interface Disagreement {
  level: number | null;
  page_bytes: number | null;
  field: string;
  values: Record<string, unknown>;
  text: string | null;
}
