import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { FieldErrors } from "@/api/field-errors";
import { asApiError } from "@/api/problem";
import { tokensQuery, useCreateToken, useRevokeToken } from "@/api/tokens";
import type { Role, Token } from "@/api/types";
import { AskFirst } from "@/components/ui/ask-first";
import { CommandLine } from "@/components/ui/command-line";
import { QueryView } from "@/components/ui/query-view";
import { QuestionCard } from "@/components/ui/question-card";
import { TableSkeleton } from "@/components/ui/skeletons";
import { ErrorState, StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { LongName, When } from "@/components/ui/values";
import { NAME_CHARACTERS } from "@/search";
import classes from "./tokens-card.module.css";

const ROLES: { value: Role; label: string }[] = [
  { value: "agent", label: "Agent: sends one node's reports" },
  { value: "enrolment", label: "Enrolment: creates agent tokens" },
  { value: "viewer", label: "Viewer: reads" },
  { value: "planner", label: "Planner: reads and plans" },
  { value: "admin", label: "Administrator" },
];

const DAY_SECONDS = 86_400;
const EXPIRIES = [
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];

/** Credentials: created here, shown once, revoked here. */
export function TokensCard() {
  const query = useQuery(tokensQuery());
  return (
    <QuestionCard
      title="Who may connect?"
      description="A token is stored hashed and shown only when it is created."
    >
      <CreateToken />
      <QueryView query={query} skeleton={<TableSkeleton rows={3} />}>
        {({ items }) =>
          items.length === 0 ? <StateText>There is no token yet.</StateText> : <TokenTable tokens={items} />
        }
      </QueryView>
    </QuestionCard>
  );
}

function CreateToken() {
  const create = useCreateToken();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("agent");
  const [days, setDays] = useState("");
  const problem = create.isError ? asApiError(create.error) : null;
  const errors = new FieldErrors(problem?.fieldErrors ?? []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(
      { name: name.trim(), role, expires_in_seconds: days ? Number(days) * DAY_SECONDS : null },
      { onSuccess: () => setName("") },
    );
  };
  return (
    <>
      <form className={classes.form} onSubmit={submit}>
        <TextInput
          label="Name"
          placeholder="db-7"
          maxLength={NAME_CHARACTERS}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={errors.at("name")}
          required
        />
        <NativeSelect
          label="Role"
          data={ROLES}
          value={role}
          onChange={(event) => setRole(event.currentTarget.value as Role)}
          error={errors.at("role")}
        />
        <NativeSelect
          label="Expires"
          data={EXPIRIES}
          value={days}
          onChange={(event) => setDays(event.currentTarget.value)}
          error={errors.at("expires_in_seconds")}
        />
        <Button type="submit" loading={create.isPending} className={classes.submit}>
          Create a token
        </Button>
      </form>
      {problem && problem.fieldErrors.length === 0 && <ErrorState error={problem} bare />}
      {create.data && (
        <div role="status">
          <StateText>The token of {create.data.name}. Copy it now; it is not shown again.</StateText>
          <CommandLine command={create.data.token} what="the token" />
        </div>
      )}
    </>
  );
}

function TokenTable({ tokens }: { tokens: readonly Token[] }) {
  const [asked, ask] = useState<Token | null>(null);
  return (
    <>
      <TableScroll label="Tokens" minWidth={640}>
        <Table verticalSpacing={6} layout="fixed" stacks>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w="28%">Name</Table.Th>
              <Table.Th>Role</Table.Th>
              <Table.Th>Created</Table.Th>
              <Table.Th>Last used</Table.Th>
              <Table.Th>Expires</Table.Th>
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {tokens.map((token) => (
              <Table.Tr key={token.id}>
                <Table.Th scope="row" fw={400}>
                  <LongName name={token.name} />
                </Table.Th>
                <Table.Td label="Role">{token.role}</Table.Td>
                <Table.Td label="Created">
                  <When iso={token.created_at} />
                </Table.Td>
                <Table.Td label="Last used">
                  {token.last_used_at ? <When iso={token.last_used_at} /> : "never"}
                </Table.Td>
                <Table.Td label="Expires">
                  {token.expires_at ? <When iso={token.expires_at} /> : "never expires"}
                </Table.Td>
                <Table.Td className="hp-num">
                  {token.revoked_at ? (
                    "revoked"
                  ) : (
                    <Button
                      size="compact-sm"
                      variant="default"
                      onClick={() => ask(token)}
                      aria-label={`Revoke ${token.name}`}
                    >
                      Revoke
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
      {asked && <RevokeToken token={asked} onClose={() => ask(null)} />}
    </>
  );
}

function RevokeToken({ token, onClose }: { token: Token; onClose: () => void }) {
  const revoke = useRevokeToken();
  return (
    <AskFirst
      title="Revoke this token?"
      keep="Keep it"
      act="Revoke the token"
      isPending={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onAct={() => revoke.mutate(token.id, { onSuccess: onClose })}
    >
      <strong className="hp-anywhere">{token.name}</strong> can no longer connect, nor can the tokens before
      and after it by rotation or the browser sessions opened with them. This cannot be taken back.
    </AskFirst>
  );
}
