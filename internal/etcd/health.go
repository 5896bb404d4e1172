package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Health implements [API]. It takes no longer than the health timeout. It connects to the members' client URLs,
// which can differ from the client's endpoints.
func (c *Client) Health(ctx context.Context, members []Member) []EndpointHealth {
	began := time.Now()
	defer func() { c.options.OnCall("health", time.Since(began), nil) }()
	ctx, cancel := context.WithTimeout(ctx, min(c.options.HealthTimeout, c.options.TotalTimeout))
	defer cancel()
	credentials, err := loadTLS(c.options.CertificatesDir)
	all := Unasked(members)
	var asking parallel.Group
	for i := range all {
		switch {
		case all[i].Endpoint == "":
		case err != nil:
			all[i].Error = err.Error()
		default:
			asking.Go(func() { examine(ctx, &all[i], credentials) })
		}
	}
	asking.Wait().Raise()
	return all
}

// Unasked returns the entries of [API].Health without results.
func Unasked(members []Member) []EndpointHealth {
	var all []EndpointHealth
	for _, m := range members {
		entry := EndpointHealth{Member: m.ID, Name: m.Name, Learner: m.Learner}
		for _, endpoint := range m.ClientURLs {
			entry.Endpoint = endpoint
			all = append(all, entry)
		}
		if len(m.ClientURLs) == 0 {
			entry.Error = "the member has never started"
			all = append(all, entry)
		}
	}
	return all
}

// examine asks one endpoint and fills in its entry.
func examine(ctx context.Context, entry *EndpointHealth, credentials *tls.Config) {
	began := time.Now()
	err := diagnose(ctx, entry, credentials)
	entry.Took = time.Since(began)
	entry.Healthy = err == nil
	if err != nil {
		entry.Error = reason(explain(ctx, entry.Endpoint, credentials, err))
	}
}

func diagnose(ctx context.Context, entry *EndpointHealth, credentials *tls.Config) error {
	client, err := connect(entry.Endpoint, credentials)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if err := readStatus(ctx, client, entry); err != nil {
		return err
	}
	if entry.Learner {
		return nil
	}
	return readLinearizably(ctx, client)
}

// readStatus reads the endpoint's status. It checks the member's id, because a new member may have the address of a lost
// member.
func readStatus(ctx context.Context, client *clientv3.Client, entry *EndpointHealth) error {
	status, err := client.Status(ctx, entry.Endpoint)
	if err != nil {
		return err
	}
	if id := ID(status.Header.MemberId); id != entry.Member {
		return fmt.Errorf("another member, %s, answers there", id)
	}
	entry.Leader = status.Leader == status.Header.MemberId
	entry.Term, entry.Learner, entry.Warnings = status.RaftTerm, status.IsLearner, status.Errors
	return nil
}
