package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

// rotated is a desk on a primary with these paths alone, whose certificates expire in five days.
func rotated(t *testing.T, keep ...string) (*desk, *primarytest.Host) {
	t.Helper()
	d, keys := newDesk(t, nil), &certificatestest.Keys{}
	host := &primarytest.Host{T: t, Dir: filepath.Join(d.dir, "kubernetes"), NewKey: keys.New, Kind: certificates.ECDSAP256, Server: "https://127.0.0.1:1"}
	host.Make(noon.AddDate(0, 0, 5))
	host.RemoveAllExcept(keep...)
	return d, host
}

func TestRotateCertsRenewsWhatIsDueAndSaysSoInLinesThatOthersRead(t *testing.T) {
	d, host := rotated(t, "admin.conf", "pki/etcd/server")
	dir := "--dir=" + host.Dir
	d.expect(d.types("rotate-certs", dir, "--ttl=24h"), exitDone, "Kept "+host.Dir+"/admin.conf: it expires at 2026-11-26T12:00:00Z\n", "")
	before := host.Leaf("admin.conf")
	d.env["HOSTNAME"] = "p1"
	d.expect(d.types("rotate-certs", dir), exitDone, "Rotated "+host.Dir+"/admin.conf: it expires at 2027-11-21T12:00:00Z\n", "")
	for _, line := range []string{
		"Missing " + host.Dir + "/scheduler.conf: skipped\n", "Rotated " + host.Dir + "/pki/etcd/server.crt: ",
		"Done on p1: 2 certificates were renewed, 0 components restarted, 9 are missing\n", "The clock was not compared with the API server's: ",
	} {
		if !strings.Contains(d.out.String(), line) {
			t.Errorf("it does not say %q but\n%s", line, d.out)
		}
	}
	d.expect(d.types("rotate-certs", "--help"), exitDone, "Exit codes: 0 ", "")
	d.expect(d.types("regen-cert", "--help"), exitDone, "Exit codes: 0 ", "")
	if host.Leaf("admin.conf").Equal(before) {
		t.Error("it is the old one")
	}
	d.env["TTL"] = "1h"
	d.expect(d.types("rotate-certs", dir, "--hostname=p2"), exitDone, "Done on p2: 0 certificates", "")
}

func TestOnlyTheCommandRenewsWhatWasJustMade(t *testing.T) {
	d, host := rotated(t, "admin.conf")
	dir := "--dir=" + host.Dir
	d.expect(d.types("rotate-certs", dir), exitDone, "Rotated "+host.Dir+"/admin.conf", "")
	if !strings.Contains(d.out.String(), ": 1 certificate was renewed, 0 components restarted, 10 are missing\n") {
		t.Errorf("it says %s", d.out)
	}
	made := host.Leaf("admin.conf")
	d.expect(d.types("host-task", "rotate-certs", dir, "--ttl=8760h"), exitDone, "Kept "+host.Dir+"/admin.conf", "")
	d.expect(d.types("rotate-certs", dir, "--ttl=4320h"), exitDone, "Kept "+host.Dir+"/admin.conf", "")
	d.expect(d.types("rotate-certs", dir, "--ttl=8760h"), exitDone, "Rotated "+host.Dir+"/admin.conf", "")
	if host.Leaf("admin.conf").Equal(made) {
		t.Error("it is the old one")
	}
}

func TestRotateCertsFailsWithALineThatSaysError(t *testing.T) {
	d, host := rotated(t, "admin.conf", "pki/etcd/server")
	if err := os.Remove(filepath.Join(host.Dir, "pki", "ca.key")); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("rotate-certs", "--dir="+host.Dir), exitFailed, "Error: renew "+host.Dir+"/admin.conf: read "+host.Dir+"/pki/ca.key: the CA is external", "")
	d.expect(d.types("rotate-certs", "--dir="+host.Dir), exitFailed, "Kept "+host.Dir+"/pki/etcd/server.crt", "")
	d.expect(d.types("rotate-certs", "--dir="+t.TempDir()), exitFailed, "Error: ", "")
	d.expect(d.types("rotate-certs", "--ttl=0s"), exitUsage, "", "want a time such as 4320h")
	d.expect(d.types("rotate-certs", "now"), exitUsage, "", "takes no argument")
	d.env["TTL"] = "soon"
	d.expect(d.types("rotate-certs"), exitUsage, "", `environment variable TTL is "soon"`)
}

func TestInAHostTaskTheSameIsDoneAndToldForOthers(t *testing.T) {
	d, host := rotated(t, "admin.conf", "pki/etcd/server")
	dir := "--dir=" + host.Dir
	d.expect(d.types("host-task", "read-certs", dir, "--ttl=720h"), exitDone, `ekco-outcome {"result":{"certificates":[{"at":"`+host.Dir+`/admin.conf"`, "")
	d.expect(d.types("host-task", "rotate-certs", dir), exitDone, "Rotated "+host.Dir+"/admin.conf", "")
	if out := d.out.String(); !strings.Contains(out, "\n"+`ekco-outcome {"result":{"rotated":["admin.conf","pki/etcd/server.crt"],"served":{"2379":"`) {
		t.Errorf("it says\n%s", out)
	}
	host.Make(noon.AddDate(0, 0, 5))
	host.RemoveAllExcept("admin.conf", "pki/etcd/server")
	host.Remove("pki/ca.key")
	d.expect(d.types("host-task", "rotate-certs", dir), exitDone, `ekco-outcome {"result":{"rotated":["pki/etcd/server.crt"],"failed":["renew `, "")
	d.expect(d.types("host-task", "rotate-certs", dir), exitDone, `ekco-outcome {"failed":"renew `, "")
}
