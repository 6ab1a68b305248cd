import type { FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** Prints PASS, FAIL or SKIP a test, what broke, and the totals. A skipped test is never counted as passed. */
export default class TotalsReporter implements Reporter {
  private passed = 0;
  private failed = 0;
  private skipped = 0;

  onTestEnd(test: TestCase, result: TestResult): void {
    const name = test.titlePath().filter(Boolean).join(" > ");
    const seconds = (result.duration / 1000).toFixed(1);
    if (result.status === "skipped") {
      this.skipped += 1;
      const reason = test.annotations.find(({ type }) => type === "skip")?.description;
      console.log(`SKIP ${name}: ${reason ?? "a test before it failed"}`);
    } else if (result.status === test.expectedStatus) {
      this.passed += 1;
      console.log(`PASS ${name} (${seconds} s)`);
    } else {
      this.failed += 1;
      console.log(`FAIL ${name} (${seconds} s)`);
      for (const error of result.errors)
        console.log((error.stack ?? error.message ?? "").split("\n").slice(0, 30).join("\n"));
    }
  }

  onError(error: { message?: string; stack?: string }): void {
    this.failed += 1;
    console.log(`FAIL outside of a test: ${error.stack ?? error.message ?? "unknown"}`);
  }

  onStdOut(chunk: string | Buffer): void {
    process.stdout.write(chunk);
  }

  onEnd(result: FullResult): void {
    if (result.status !== "passed" && this.failed === 0) this.failed = 1;
    console.log(`browser: ${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`);
  }

  printsToStdio(): boolean {
    return true;
  }
}
