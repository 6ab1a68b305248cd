import { expect, test } from "./fixtures";

test.use({ colorScheme: "dark" });

test("a dark page is printed in the light page's colours, and is dark again after", async ({
  signedIn: page,
  fleet,
}) => {
  await page.goto(`${fleet.server.url}/planner?node=${fleet.numaId}`);
  await expect(page.getByTestId("plan-headline")).toBeVisible();
  const colours = () =>
    page.evaluate(() => ({
      paper: getComputedStyle(document.documentElement).colorScheme,
      ink: getComputedStyle(document.querySelector('[data-testid="plan-headline"]') as Element).color,
    }));
  const onScreen = await colours();
  expect(onScreen.paper).toBe("dark");
  await page.evaluate(() => {
    window.addEventListener("beforeprint", () => {
      const headline = document.querySelector('[data-testid="plan-headline"]') as Element;
      const { colorScheme } = getComputedStyle(document.documentElement);
      Object.assign(window, { printed: { paper: colorScheme, ink: getComputedStyle(headline).color } });
    });
  });
  await page.pdf();
  const printed = await page.evaluate(() => (window as unknown as { printed: typeof onScreen }).printed);
  expect(await colours()).toEqual(onScreen);
  await page.emulateMedia({ colorScheme: "light" });
  await page.reload();
  await expect(page.getByTestId("plan-headline")).toBeVisible();
  expect(printed).toEqual(await colours());
});
