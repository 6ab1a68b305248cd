import { readdirSync, readFileSync } from "node:fs";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { renderWithTheme as render } from "@/test/render";
import { GLOSSARY } from "./glossary";
import { Term, TermMark } from "./term";

it("explains a term with its source by click, and gives the focus back on Escape", async () => {
  const user = userEvent.setup();
  render(<Term name="surplus">Surplus (pages)</Term>);
  const term = screen.getByRole("button", { name: "Surplus (pages)" });
  expect(term.getAttribute("aria-expanded")).toBe("false");
  await user.click(term);
  const box = await screen.findByRole("dialog", { name: "Surplus" });
  expect(box.textContent).toContain("nr_overcommit_hugepages");
  const link = screen.getByRole("link", { name: "Linux kernel, HugeTLB Pages" });
  expect(link.getAttribute("href")).toBe("https://docs.kernel.org/admin-guide/mm/hugetlbpage.html");
  await user.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await waitFor(() => expect(document.activeElement).toBe(term));
});

it("explains a term beside a control of its own", async () => {
  const user = userEvent.setup();
  render(<TermMark name="idle" of="Idle" />);
  await user.tab();
  await user.keyboard("{Enter}");
  expect((await screen.findByRole("dialog", { name: GLOSSARY.idle.title })).textContent).toContain(
    GLOSSARY.idle.source.text,
  );
});

it("opens and closes by keyboard and by a second click", async () => {
  const user = userEvent.setup();
  render(<Term name="slack">Slack</Term>);
  await user.tab();
  await user.keyboard("{Enter}");
  expect(await screen.findByRole("dialog", { name: "Slack" })).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Slack" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

it.each(Object.entries(GLOSSARY))("%s is one or two sentences with a source", (_name, { text, source }) => {
  const sentences = text.split(/(?<=\.)\s+(?=[A-Z0-9])/);
  expect(sentences.length).toBeLessThanOrEqual(2);
  expect(text).toMatch(/\.$/);
  expect(source.text).not.toBe("");
  if ("url" in source) expect(source.url).toMatch(/^https:\/\/(docs\.kernel\.org|kubernetes\.io)\//);
});

it("has no term that no page uses", () => {
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".tsx") && !name.endsWith(".test.tsx"))
    .map((name) => readFileSync(`src/${name}`, "utf8"))
    .join("\n");
  const unused = Object.keys(GLOSSARY).filter((name) => !sources.includes(`"${name}"`));
  expect(unused).toEqual([]);
});
