import { deflateSync } from "fflate";
import { expect, it } from "vitest";
import { initialForm, newDatabase, readForm } from "../draft/planner-form";
import { fromFragment, toFragment } from "./address";

it("keeps a draft of 200 databases to the letter, in a link that browsers and people pass on", () => {
  const form = initialForm();
  while (form.databases.length < 200)
    form.databases.push({
      ...newDatabase(form.databases),
      settings: { shared_buffers: `${form.databases.length}GB` },
    });
  const fragment = toFragment({ form });
  expect(fragment).toMatch(/^draft=[\w-]+$/);
  expect(fragment.length).toBeLessThan(8000);
  const found = fromFragment(`#${fragment}`) as { form: unknown };
  expect(readForm(found.form)).toEqual(form);
});

it("keeps letters of every language", () => {
  const names = { name: "заказы-数据库-ü-😀", text: "a&b=c#d?e/f%20" };
  expect(fromFragment(toFragment(names))).toEqual(names);
});

it("takes a damaged, cut or foreign fragment for none", () => {
  const whole = toFragment({ form: initialForm() });
  const odd = ["", "#", "#content", "#token=abc", "#draft=", "#draft=%%%", `#${whole.slice(0, -9)}`];
  for (const fragment of odd) expect(fromFragment(fragment), fragment).toBeUndefined();
});

it("unpacks no bomb", () => {
  const packed = deflateSync(new Uint8Array(64 * 1024 * 1024).fill(0x20), { level: 9 });
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  expect(fromFragment(`#draft=${btoa(binary)}`)).toBeUndefined();
});
