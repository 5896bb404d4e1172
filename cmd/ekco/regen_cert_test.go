package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
)

func TestRegenCertChangesTheNamesAndSaysWhich(t *testing.T) {
	d, dir := newDesk(t, nil), t.TempDir()
	ca := certificatestest.CA(t, "kubernetes", noon.Add(certificates.Year))
	certificate, key := certificatestest.Pair(t, ca, "kube-apiserver", noon.Add(certificates.Year/2), "kubernetes", "old-lb.example.com")
	caKey, err := certificates.EncodeKey(ca.Key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"ca.crt": certificates.EncodeChain(ca.Certificate), "ca.key": caKey, "apiserver.crt": certificate, "apiserver.key": key,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pki := "--certificates_dir=" + dir
	d.expect(d.types("regen-cert", pki, "--add-alt-names=lb.example.com,10.0.0.9", "--drop-alt-names", "old-lb.example.com"), exitDone,
		"Added: lb.example.com, 10.0.0.9\nDropped: old-lb.example.com\nThe API server's certificate is new, and includes: kubernetes, lb.example.com, 10.0.0.9\n", "")
	d.expect(d.types("regen-cert", pki, "--add-alt-names=lb.example.com"), exitDone,
		"The API server's certificate has these names already: kubernetes, lb.example.com, 10.0.0.9\n", "")
	d.expect(d.types("regen-cert", pki, "lb.example.com"), exitUsage, "", "takes no argument")
	d.expect(d.types("regen-cert", pki, "--drop-alt-names=10.0.0.9"), exitFailed, "", "--force")
	for _, host := range []string{"lb.example.com", "regen-cert-lb.example.com"} { // the node's name, and that of the installer's pod
		d.env["HOSTNAME"] = host
		d.expect(d.types("regen-cert", pki, "--drop-alt-names=lb.example.com"), exitFailed, "", "the name of this node")
	}
	d.env["HOSTNAME"] = "p1"
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("regen-cert", pki, "--drop-alt-names=lb.example.com"), exitFailed, "", "the CA is external")
	if out := d.out.String(); strings.Contains(out, "Dropped") {
		t.Errorf("it says %s", out)
	}
}
