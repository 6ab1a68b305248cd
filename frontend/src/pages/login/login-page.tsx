import "@/theme/mantine-pages.css";
import { Button, PasswordInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useEffectEvent, useState } from "react";
import { asApiError } from "@/api/problem";
import { useLogin } from "@/api/session";
import { loginMethodsQuery } from "@/api/settings";
import { Logo } from "@/components/shell/logo";
import { ErrorState } from "@/components/ui/states";
import { rememberForLogin, takeRemembered } from "@/lib/after-login";
import classes from "./login-page.module.css";
import { takeTokenFromHash } from "./token-hash";

/** Signs in with the token of a login link. The token is taken out of the address before anything else happens. */
export function LoginPage() {
  const { next } = useSearch({ from: "/login" });
  const navigate = useNavigate();
  const login = useLogin();
  // Where this cannot be asked, a token still signs in.
  const methods = useQuery(loginMethodsQuery());
  const [token, setToken] = useState("");

  const signIn = (value: string) =>
    login.mutate(value, {
      onSuccess: () => {
        takeRemembered();
        void navigate({ href: (next ?? "/") + window.location.hash, replace: true });
      },
    });

  const readAddress = useEffectEvent(() => {
    const found = takeTokenFromHash(window);
    if (found) signIn(found);
  });
  useEffect(() => {
    document.title = "Sign in - hugeplan";
    readAddress();
    // A login link opened in this tab changes only the fragment, which loads no new page.
    window.addEventListener("hashchange", readAddress);
    return () => window.removeEventListener("hashchange", readAddress);
  }, []);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) signIn(token.trim());
  };

  return (
    <main className={classes.page}>
      <form className={classes.card} onSubmit={submit}>
        <Logo size={36} />
        <h1 className={classes.title}>Sign in to hugeplan</h1>
        <p className={classes.text}>
          Open the login link that <span className="hp-mono">make demo</span> printed, or paste a token. A
          token is made with <span className="hp-mono">hugeplan token create</span>.
        </p>
        <PasswordInput
          label="Token"
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          autoComplete="current-password"
          w="100%"
          required
        />
        <Button type="submit" loading={login.isPending} fullWidth>
          Sign in
        </Button>
        {methods.data?.oidc_url && (
          // A full page load: the server sends the browser on to the provider.
          <Button
            component="a"
            href={methods.data.oidc_url}
            onClick={() => rememberForLogin((next ?? "/") + window.location.hash)}
            variant="default"
            fullWidth
          >
            Sign in with your organisation
          </Button>
        )}
        {login.isError && (
          <div className={classes.error}>
            {asApiError(login.error).isUnauthorized ? (
              <p role="alert" className={classes.refused}>
                This token is not valid here. It may have expired or been revoked. Make a new one and try
                again.
              </p>
            ) : (
              <ErrorState error={login.error} bare />
            )}
          </div>
        )}
      </form>
    </main>
  );
}
