import type { components } from "./schema";

type Schemas = components["schemas"];

export type NodeSummary = Schemas["NodeSummary"];
export type NodeDetail = Schemas["NodeDetail"];
export type SampleMemory = Schemas["SampleMemory"];
export type LatestSample = Schemas["LatestSample"];
export type GeometrySummary = Schemas["GeometrySummary"];
export type TlbLevel = Schemas["TlbLevelDocument"];
export type Granule = Schemas["Granule"];
export type Penalty = Schemas["Penalty"];
export type Disagreement = Schemas["Disagreement"];
export type ProcessMemory = Schemas["ProcessMemory"];
export type NodeProcesses = Schemas["NodeProcesses"];
export type NodeHistory = Schemas["NodeHistory"];

export type Trial = Schemas["Trial"];
export type FleetTrial = Schemas["FleetTrial"];

export type Run = Schemas["Run"];
export type RunDetail = Schemas["RunDetail"];
export type RunCurve = Schemas["RunCurve"];
export type CurvePoint = Schemas["CurvePointDocument"];
export type RunComparison = Schemas["RunComparison"];
export type PairedDelta = Schemas["PairedDelta"];
export type Pressure = Schemas["Pressure"];
export type PressurePoint = Schemas["PressurePointDocument"];
export type RowMeasurement = Schemas["RowMeasurement"];

export type PlanInForce = Schemas["PlanInForce"];
export type Plan = Schemas["Plan"];
export type PlanPreview = Schemas["PlanPreview"];
export type PlanArtifact = Schemas["PlanArtifact"];
export type LedgerPart = Schemas["LedgerPart"];
export type LedgerKind = Schemas["LedgerKind"];
export type Gain = Schemas["Gain"];
export type Finding = Schemas["Finding"];
export type Choice = Schemas["Choice"];
export type InstancePlan = Schemas["InstancePlan"];
export type PoolBenefit = Schemas["PoolBenefit"];
export type Term = Schemas["Term"];

export type ScenarioDocument = Schemas["ScenarioDocument"];
export type Scenario = Schemas["Scenario"];
export type SavedPlan = Schemas["SavedPlan"];
export type PlanSummary = Schemas["PlanSummary"];
export type PlanOnNode = Schemas["PlanOnNode"];
export type Verdict = Schemas["Verdict"];
export type FleetRowsDecision = Schemas["FleetRowsDecision"];
export type FleetRowsDecided = Schemas["FleetRowsDecided"];

export type EngineInfo = Schemas["EngineInfo"];
export type EngineSetting = Schemas["EngineSetting"];
export type Evidence = Schemas["Evidence"];
export type ModelErrors = Schemas["ModelErrors"];
export type ModelErrorClass = Schemas["ModelErrorClass"];
export type PublishedResult = Schemas["PublishedResult"];
export type PublishedPoolShape = Schemas["PublishedPoolShape"];
export type Backtest = Schemas["Backtest"];
export type BacktestRow = Schemas["BacktestRow"];
export type Validation = Schemas["Validation"];
export type ValidationRun = Schemas["ValidationRun"];

export type Session = Schemas["Session"];
export type Role = Schemas["Role"];
export type BrowserSession = Schemas["BrowserSessionItem"];
export type PendingEnrolment = Schemas["PendingEnrolment"];
export type AuditEntry = Schemas["AuditEntry"];
export type Token = Schemas["Token"];
export type TokenCreate = Schemas["TokenCreate"];

export type LintReport = Schemas["LintReport"];
export type KubernetesImport = Schemas["KubernetesImport"];
export type PastedSettings = Schemas["PastedSettings"];

export type FleetSummary = Schemas["FleetSummary"];
export type FleetFinding = Schemas["FleetFinding"];
export type FleetPart = Schemas["FleetPart"];
export type FleetEvent = Schemas["FleetEvent"];
export type NodeGroup = Schemas["NodeGroup"];
export type FleetPlanRequest = Schemas["FleetPlanRequest"];
export type FleetPlanJob = Schemas["FleetPlanJob"];
export type FleetPlanDetail = Schemas["FleetPlanDetail"];
export type FleetPlanSummary = Schemas["FleetPlanSummary"];
export type FleetPlanNode = Schemas["FleetPlanNode"];
export type FleetPlanGroup = Schemas["FleetPlanGroup"];
export type SizeWins = Schemas["SizeWins"];
export type PageSizeWins = Schemas["PageSizeWins"];
