import type { ReactNode } from "react";

function Icon({ children, size = 18 }: { children: ReactNode; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.6}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {children}
    </svg>
  );
}

export const OverviewIcon = () => (
  <Icon>
    <path d="M3 3h6v8H3zM11 3h6v4h-6zM11 9h6v8h-6zM3 13h6v4H3z" />
  </Icon>
);
export const NodesIcon = () => (
  <Icon>
    <path d="M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01M10 6.5h4M10 13.5h4" />
  </Icon>
);
export const ImportIcon = () => (
  <Icon>
    <path d="M10 3v9M6 8.5l4 4 4-4M3 13v4h14v-4" />
  </Icon>
);
export const CompareIcon = () => (
  <Icon>
    <path d="M3 15c4-1 4-9 7-9s3 5 7 4M3 11c3 0 4 4 7 4s4-1 7-2" />
  </Icon>
);
export const FleetPlanIcon = () => (
  <Icon>
    <path d="M3 3h4v4H3zM3 13h4v4H3zM13 8h4v4h-4zM7 5h3v10H7M10 10h3" />
  </Icon>
);
export const PlannerIcon = () => (
  <Icon>
    <path d="M3 6h14v8H3zM7 6v8M11 6v8M3 3.5h8M3 16.5h14" />
  </Icon>
);
export const PlansIcon = () => (
  <Icon>
    <path d="M5 2.5h7l3.5 3.5v11.5H5zM12 2.5V6h3.5M8 10h5M8 13.5h3" />
  </Icon>
);
export const EvidenceIcon = () => (
  <Icon>
    <path d="M4 3h9l3 3v11H4zM7 8h6M7 11h6M7 14h3" />
  </Icon>
);
export const SettingsIcon = () => (
  <Icon>
    <path d="M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4" />
  </Icon>
);
export const CopyIcon = () => (
  <Icon size={16}>
    <path d="M7 7h9v9H7zM4 13V4h9" />
  </Icon>
);
export const CheckIcon = () => (
  <Icon size={16}>
    <path d="m4 10.5 4 4 8-9" />
  </Icon>
);
export const DownloadIcon = () => (
  <Icon size={16}>
    <path d="M10 3v9M6 8.5l4 4 4-4M4 16.5h12" />
  </Icon>
);
export const PlusIcon = () => (
  <Icon size={16}>
    <path d="M10 4v12M4 10h12" />
  </Icon>
);
export const UndoIcon = () => (
  <Icon size={16}>
    <path d="M8 4 4 8l4 4M4 8h8a4 4 0 0 1 0 8H8" />
  </Icon>
);
export const RedoIcon = () => (
  <Icon size={16}>
    <path d="m12 4 4 4-4 4M16 8H8a4 4 0 0 0 0 8h4" />
  </Icon>
);
export const TrashIcon = () => (
  <Icon size={16}>
    <path d="M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6" />
  </Icon>
);
export const SearchIcon = () => (
  <Icon size={16}>
    <path d="M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM13 13l4 4" />
  </Icon>
);
export const OkIcon = () => (
  <Icon size={16}>
    <circle cx="10" cy="10" r="7" />
    <path d="m7 10.2 2.2 2.2L13.2 8" />
  </Icon>
);
export const AttentionIcon = () => (
  <Icon size={16}>
    <path d="M10 3.2 17.5 16.5h-15zM10 8.5v3.5M10 14.4h.01" />
  </Icon>
);
export const WrongIcon = () => (
  <Icon size={16}>
    <path d="M7 3h6l4 4v6l-4 4H7l-4-4V7zM7.8 7.8l4.4 4.4M12.2 7.8l-4.4 4.4" />
  </Icon>
);
export const UnknownIcon = () => (
  <Icon size={16}>
    <circle cx="10" cy="10" r="7" strokeDasharray="2.6 2.2" />
    <path d="M8 8.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.6-.8 1.3M10 13.6h.01" />
  </Icon>
);
export const CrackIcon = () => (
  <Icon size={18}>
    <path d="m11 2-3 5 3.5 2.5L8 13l2.5 1.5L9 18" />
  </Icon>
);
