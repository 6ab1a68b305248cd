import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { PlanArtifact } from "@/api/types";
import { keptOf } from "@/test/plan-fixture";
import { renderWithTheme } from "@/test/render";
import { FilesCard } from "./files-card";

const file = (kind: string, change: Partial<PlanArtifact> = {}): PlanArtifact => ({
  kind,
  filename: `${kind}.conf`,
  path: null,
  media_type: "text/plain",
  content: `# plan 7f3a-91c2-5d0e-b846\ncontent of ${kind}`,
  summary: "It does it.",
  install: "install it",
  verify: "verify it",
  rollback: "undo it",
  restart: "nothing",
  avoid_when: "",
  recommended: false,
  step: null,
  ...change,
});

it("shows the recommended path in its order, and each file as the plan has it", async () => {
  const artifacts = [
    file("sysctl"),
    file("postgresql_conf", { recommended: true, step: 2 }),
    file("grub", { recommended: true, step: 1 }),
  ];
  renderWithTheme(<FilesCard kept={keptOf({ artifacts })} />);
  expect(screen.getAllByRole("tab").map((tab) => tab.textContent?.slice(0, 2))).toEqual(["1.", "2."]);
  expect(screen.getByText(/content of grub/)).toBeTruthy();
  await userEvent.selectOptions(
    screen.getByRole("combobox", { name: "Another way to apply it" }),
    "sysctl:sysctl.conf",
  );
  expect(screen.getByText(/content of sysctl/)).toBeTruthy();
});

it("links the files of the kept plan, so that a second computation cannot make others", () => {
  renderWithTheme(
    <FilesCard kept={keptOf({ artifacts: [file("sysctl", { recommended: true, step: 1 })] })} />,
  );
  const base = `/api/v1/plans/${keptOf().id}`;
  expect(screen.getByRole("link", { name: "All as zip" }).getAttribute("href")).toBe(`${base}/artifacts.zip`);
  expect(screen.getByRole("link", { name: "Download" }).getAttribute("href")).toBe(
    `${base}/artifacts/sysctl?filename=sysctl.conf`,
  );
});

it("downloads the file that is shown where a plan has two of one kind", async () => {
  const artifacts = ["a", "b"].map((pod) => file("pod", { filename: `${pod}-resources.yaml`, step: 1 }));
  renderWithTheme(<FilesCard kept={keptOf({ artifacts })} />);
  const href = () => screen.getByRole("link", { name: "Download" }).getAttribute("href");
  expect(href()).toMatch(/filename=a-resources\.yaml$/);
  await userEvent.selectOptions(
    screen.getByRole("combobox", { name: "Another way to apply it" }),
    "pod:b-resources.yaml",
  );
  expect(href()).toMatch(/filename=b-resources\.yaml$/);
});

it("says so where there is nothing to apply", () => {
  renderWithTheme(<FilesCard kept={keptOf()} />);
  expect(screen.getByRole("heading", { name: "There is no file to apply." })).toBeTruthy();
});

it("says why there are no files, where the plan's node has another name now", () => {
  const why = "The node of this plan was called db-7, and its name is db-9 now. Plan it again.";
  renderWithTheme(<FilesCard kept={keptOf({ artifacts: [], artifacts_withheld: why })} />);
  expect(screen.getByText(why)).toBeTruthy();
  expect(screen.queryByText("This plan changes nothing.")).toBeNull();
});
