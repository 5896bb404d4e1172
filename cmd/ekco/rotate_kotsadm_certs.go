package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/journal"
)

// byHandTTL is the lifetime that earlier versions of EKCO used by default.
const byHandTTL = 180 * 24 * time.Hour

// renewalTimeout is how long the command waits for a renewal; after that the operator continues alone.
const renewalTimeout = 5 * time.Minute

func newRotateKotsadmCertsCommand(a *app) *cobra.Command {
	var ttl, timeout time.Duration
	var reason string
	cmd := &cobra.Command{
		Use:   "rotate-kotsadm-certs",
		Short: "Renew the certificate of the kURL proxy now",
		Long: `The running operator renews the certificate of the kURL proxy, which serves the admin console,
if it expires within --ttl. The command shows the steps until the proxy serves the new one. A
customer's own certificate is an error; it is never changed. The renewal continues if this
command is interrupted.

Exit codes: 0 it is renewed, or does not expire within --ttl; 1 refused, failed or not finished;
2 the command line or the configuration makes no sense.`,
		Example: `  ekco rotate-kotsadm-certs
  ekco rotate-kotsadm-certs --ttl 8760h --reason "the key was seen by others"`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ttl <= 0 {
				return usagef("--ttl is %s; it must be more than 0", ttl)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return a.withConnection(ctx, cmd, func(conn *connection) error {
				if !conn.running {
					return errors.New("no operator runs that could renew the certificate; start it (kubectl -n kurl scale deploy/ekc-operator --replicas=1)")
				}
				request, err := fsmcertificates.Request(journal.CertificateKurlProxy.Name, ttl, api.LocalActor(), reason)
				if err != nil {
					return err
				}
				admitted, err := conn.Request(ctx, request)
				if err != nil {
					return err
				}
				if admitted.AlreadyDone {
					_, err = fmt.Fprintln(a.stdout, view.Clean(admitted.Message))
					return err
				}
				return a.followToEnd(ctx, conn, admitted.Action, timeout)
			})
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", byHandTTL, "renew it if it expires within this time")
	cmd.Flags().DurationVar(&timeout, "timeout", renewalTimeout, "how long to wait for the end of the renewal")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// followToEnd prints the events of an action until it has ended, and returns an error unless it has succeeded.
func (a *app) followToEnd(ctx context.Context, conn *connection, action string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it has not ended within %s", timeout))
	defer cancel()
	goesOn := openActionText(action)
	for event, err := range conn.Events(ctx, journal.Query{Action: action}, true) {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w%s", context.Cause(ctx), goesOn)
		case err != nil:
			return fmt.Errorf("lost the connection to the operator: %w%s", err, goesOn)
		}
		decoded := event.Decoded()
		if _, err := fmt.Fprintln(a.stdout, view.Clean(view.Sentence(a.words, decoded))); err != nil {
			return err
		}
		switch p := decoded.Body.(type) {
		case *journal.ActionStalled:
			return fmt.Errorf("%s has stalled: %s; after repairing the cause, run: ekco retry %s", action, p.Reason, action)
		case *journal.ActionEnded:
			if p.Outcome == journal.OutcomeDone || p.Outcome == journal.OutcomeDryRun {
				return nil
			}
			return fmt.Errorf("%s has ended with the outcome %s: %s", action, p.Outcome, p.Reason)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w%s", context.Cause(ctx), goesOn)
	}
	return fmt.Errorf("lost the connection to the operator: the stream of events ended%s", goesOn)
}
