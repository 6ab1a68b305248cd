import { expect, it } from "vitest";
import { hostCommand, kubernetesCommand, shellCommand } from "./connect-commands";

it.each([
  ["host", hostCommand("https://plan.example")],
  ["shell", shellCommand("https://plan.example")],
  ["Kubernetes", kubernetesCommand("https://plan.example")],
])(
  "the command for a %s names this server, asks for the token without echo, and never holds one",
  (_, command) => {
    expect(command).toContain("https://plan.example");
    expect(command).toContain("read -rsp");
    expect(command).not.toMatch(/hp_|--token[= ]|--from-literal|TOKEN=/);
  },
);

it("passes the token by a file that only its owner can read, or by a pipe", () => {
  expect(hostCommand("https://a")).toMatch(/^\(umask 077 && read .* > hugeplan\.enrolment\) && /);
  expect(hostCommand("https://a")).toContain("printf '%s\\n'");
  expect(kubernetesCommand("https://a")).toContain("--from-file=token=/dev/stdin");
});

it("leaves an agent on a host that is there after a reboot", () => {
  expect(hostCommand("https://a")).toContain("systemctl enable --now hugeplan-agent.service");
});
