package secrets_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/journal"
)

func TestABetterClientOfThePrimaryIsCopiedWithItsKeyAndNothingElse(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		until := time.Now().Add(300 * day)
		c.InstallKubeletClient(until)
		c.RenewPrimary(until.Add(day + time.Second))
		before := c.Object(certificatestest.KubeletSecret)
		facts := read(t, c, journal.CertificateKubeletClient)
		if why, is := due(facts); !is || !strings.HasPrefix(why, "the primary has one that expires at ") || facts.Within != "" {
			t.Errorf("the facts are %+v", facts)
		}
		facts, err := c.Store().Renew(t.Context(), journal.CertificateKubeletClient, due)
		if err != nil || isDue(facts) || facts.Unreadable != "" || !facts.Certificates[0].NotAfter.Equal(until.Add(day+time.Second).Truncate(time.Second)) {
			t.Fatalf("%v: %+v", err, facts)
		}
		if lacks, err := c.Store().WhyNotServed(t.Context(), journal.CertificateKubeletClient, 0); err != nil || lacks != "" {
			t.Errorf("%v: %q", err, lacks)
		}
		after := c.Object(certificatestest.KubeletSecret)
		if diff := cmp.Diff(before["data"].(map[string]any)["ca.crt"], after["data"].(map[string]any)["ca.crt"]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestPrimariesThatAreRenewedOneAfterTheOtherAreCopiedOnce: EKCO may run on any of them.
func TestPrimariesThatAreRenewedOneAfterTheOtherAreCopiedOnce(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		until := time.Now().Add(300 * day)
		c.InstallKubeletClient(until)
		for _, primary := range []time.Time{until.Add(day), until.Add(time.Minute), until.Add(-100 * day)} {
			c.RenewPrimary(primary)
			if facts := read(t, c, journal.CertificateKubeletClient); isDue(facts) || facts.Unreadable != "" {
				t.Errorf("the facts are %+v", facts)
			}
			if _, err := c.Store().Renew(t.Context(), journal.CertificateKubeletClient, due); err != nil || len(c.Effects()) != 0 {
				t.Errorf("%v: %v", err, c.Effects())
			}
		}
	})
}

func TestAClientThatAnotherCASignedIsReplaced(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		until := time.Now().Add(300 * day)
		crt, key := certificatestest.Pair(t, certificatestest.CA(t, "another", until), "kube-apiserver-kubelet-client", until)
		c.Put(certificatestest.KubeletSecret, certificatestest.Secret(map[string][]byte{"client.crt": crt, "client.key": key}))
		c.RenewPrimary(until.Add(-100 * day))
		facts := read(t, c, journal.CertificateKubeletClient)
		if why, is := due(facts); !is || !strings.HasPrefix(why, "the cluster's CA has not signed it; ") {
			t.Errorf("the facts are %+v", facts)
		}
		c.SetPrimary(crt, key, nil) // nor has it signed this one
		c.InstallKubeletClient(until.Add(-100 * day))
		if err := c.Store().Ready(t.Context(), journal.CertificateKubeletClient); err == nil {
			t.Error("it may be copied")
		}
		third, ofThird := certificatestest.Pair(t, certificatestest.CA(t, "a third", until), "kube-apiserver-kubelet-client", until)
		c.Put(certificatestest.KubeletSecret, certificatestest.Secret(map[string][]byte{"client.crt": third, "client.key": ofThird}))
		if facts := read(t, c, journal.CertificateKubeletClient); isDue(facts) {
			t.Errorf("neither is signed, and one is copied for the other: %+v", facts)
		}
	})
}

func TestWhatKubeletsDoNotAcceptIsNotCopied(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallKubeletClient(soon())
		c.RenewPrimary(time.Now().Add(300 * day))
		c.AcceptNothing(errors.New("the kubelet answers 401"))
		if err := c.Store().Ready(t.Context(), journal.CertificateKubeletClient); err == nil || err.Error() != "copy apiserver-kubelet-client.crt: the kubelet answers 401" {
			t.Error(err)
		}
		if lacks, err := c.Store().WhyNotServed(t.Context(), journal.CertificateKubeletClient, 0); err != nil || lacks != "the kubelet answers 401" {
			t.Errorf("%v: %q", err, lacks)
		}
	})
}

func TestAPrimaryThatIsBeingRenewedIsNotCopied(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallKubeletClient(soon())
		crt, _ := certificatestest.Pair(t, c.CA, "kube-apiserver-kubelet-client", time.Now().Add(300*day))
		_, other := newKey(t)
		c.SetPrimary(crt, other, nil)
		if facts := read(t, c, journal.CertificateKubeletClient); isDue(facts) || !strings.Contains(facts.Unreadable, "apiserver-kubelet-client.key") {
			t.Errorf("the facts are %+v", facts)
		}
		if _, err := c.Store().Renew(t.Context(), journal.CertificateKubeletClient, due); err == nil || len(c.Effects()) != 0 {
			t.Errorf("%v: %v", err, c.Effects())
		}
		c.SetPrimary(nil, nil, errors.New("read apiserver-kubelet-client.crt: no such file"))
		if facts := read(t, c, journal.CertificateKubeletClient); facts.Unreadable != "read apiserver-kubelet-client.crt: no such file" || len(facts.Certificates) != 1 {
			t.Errorf("the facts are %+v", facts)
		}
	})
}
