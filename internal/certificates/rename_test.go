package certificates

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/durable"
)

// host is a directory of certificates as kubeadm leaves it.
func host(t *testing.T, key string) (string, pki) {
	t.Helper()
	p, dir := newPKI(t, key, now.Add(10*Year)), t.TempDir()
	for name, content := range map[string][]byte{
		"ca.crt": p.caFile.Content, "ca.key": p.caKeyFile.Content, "apiserver.crt": p.leafFile.Content, "apiserver.key": p.leafKeyOf.Content,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "apiserver.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, p
}

func pairIn(t *testing.T, dir string) (*x509.Certificate, error) {
	t.Helper()
	certificate, err := ReadFile(filepath.Join(dir, "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ReadFile(filepath.Join(dir, "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	chain, _, err := Pair(certificate, key)
	if err != nil {
		return nil, err
	}
	return chain[0], nil
}

func change(dir string, add, drop string) APIServerNames {
	return APIServerNames{Dir: dir, Add: strings.Split(add, ","), Drop: strings.Split(drop, ","), ServiceHost: "10.96.0.1", Renewal: Renewal{Now: now}}
}

func TestNamesAreAddedAndDroppedAndAllElseIsKept(t *testing.T) {
	for _, kind := range []string{"leaf", "rsa"} {
		dir, p := host(t, kind)
		changed, err := change(dir, "lb.example.com, 10.96.0.7,[fd00::8],lb.example.com,FD00:0::9", "registry,10.0.0.1,fd00:0:0::7").Change(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := ChangedNames{
			Included: []string{"registry.kurl", "10.96.0.7", "lb.example.com", "fd00::8", "fd00::9"},
			Added:    []string{"lb.example.com", "fd00::8", "fd00::9"}, Dropped: []string{"registry", "fd00::7"},
		}
		if diff := cmp.Diff(want, changed); diff != "" {
			t.Error(diff)
		}
		made, err := pairIn(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Included, hostNames(made), cmp.Transformer("sorted", func(names []string) map[string]bool {
			set := map[string]bool{}
			for _, name := range names {
				set[name] = true
			}
			return set
		})); diff != "" {
			t.Error(diff)
		}
		if !made.NotAfter.Equal(p.leaf.NotAfter) || !bytes.Equal(made.RawSubject, p.leaf.RawSubject) || KindOf(made.PublicKey) != KindOf(p.leaf.PublicKey) || made.KeyUsage != p.leaf.KeyUsage ||
			cmp.Diff(made.ExtKeyUsage, p.leaf.ExtKeyUsage) != "" || made.CheckSignatureFrom(p.ca.Certificate) != nil || !made.NotBefore.Equal(p.leaf.NotBefore) {
			t.Errorf("it is %+v", Facts("", made))
		}
		for name, mode := range map[string]fs.FileMode{"apiserver.crt": 0o640, "apiserver.key": 0o600} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
				t.Errorf("%v: %s has mode %s", err, name, info.Mode())
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
			t.Errorf("%v: there are %v", err, entries)
		}
		before, err := os.ReadFile(filepath.Join(dir, "apiserver.key"))
		if err != nil {
			t.Fatal(err)
		}
		if changed, err = change(dir, "lb.example.com", "registry").Change(t.Context()); err != nil || !changed.Unchanged {
			t.Errorf("again: %v: %+v", err, changed)
		}
		if after, err := os.ReadFile(filepath.Join(dir, "apiserver.key")); err != nil || !bytes.Equal(before, after) {
			t.Error("what has the names already was changed")
		}
	}
}

func TestWhatWasInterruptedBetweenKeyAndCertificateIsMended(t *testing.T) {
	dir, p := host(t, "leaf")
	if err := os.WriteFile(filepath.Join(dir, "apiserver.key"), p.otherKeyOf.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".apiserver.crt.ekco"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pairIn(t, dir); err == nil {
		t.Fatal("they belong together")
	}
	if changed, err := change(dir, "", "").Change(t.Context()); err != nil || changed.Unchanged {
		t.Fatalf("%v: %+v", err, changed)
	}
	if _, err := pairIn(t, dir); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeChangedStaysAsItIs(t *testing.T) {
	for want, test := range map[string]struct {
		prepare func(dir string, p pki) error
		names   [2]string
		is      error
	}{
		"no name would be left": {names: [2]string{"", "registry,registry.kurl,10.96.0.7,fd00::7"}},
		"external": {
			prepare: func(dir string, _ pki) error { return os.Remove(filepath.Join(dir, "ca.key")) }, names: [2]string{"x", ""}, is: ErrExternalCA,
		},
		"2 certificates, want one": {
			prepare: func(dir string, p pki) error {
				return os.WriteFile(filepath.Join(dir, "apiserver.crt"), EncodeChain(p.leaf, p.ca.Certificate), 0o600)
			}, names: [2]string{"x", ""},
		},
		"apiserver.key: it is a symbolic link": {
			prepare: func(dir string, _ pki) error {
				path := filepath.Join(dir, "apiserver.key")
				return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
			}, names: [2]string{"x", ""}, is: ErrLink,
		},
	} {
		t.Run(want, func(t *testing.T) {
			dir, p := host(t, "leaf")
			if test.prepare != nil {
				if err := test.prepare(dir, p); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := change(dir, test.names[0], test.names[1]).Change(t.Context()); err == nil || !strings.Contains(err.Error(), want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(filepath.Join(dir, "apiserver.crt")); err != nil || !bytes.Equal(before, after) {
				t.Error("it was changed")
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".*.ekco")); err != nil || len(left) > 0 {
				t.Errorf("%v: %v was left", err, left)
			}
		})
	}
	dir, _ := host(t, "leaf")
	late := change(dir, "x", "")
	late.Now = now.Add(2 * time.Hour)
	if _, err := late.Change(t.Context()); err == nil || !strings.Contains(err.Error(), "expired at 2026-11-23T13:00:00Z") {
		t.Errorf("got %v", err)
	}
}

func TestAKeyWhoseCertificateCannotBePutIntoItsPlaceGoesBack(t *testing.T) {
	for fails, wants := range map[string]string{"apiserver.crt": "apiserver.crt: no", "apiserver.key": "apiserver.key: no"} {
		dir, p := host(t, "leaf")
		by := func(r durable.Replacement) error {
			if filepath.Base(r.Path) == fails {
				return errors.New("no")
			}
			return r.Swap()
		}
		err := swapPair(by, filepath.Join(dir, "apiserver.crt"), p.caFile.Content, filepath.Join(dir, "apiserver.key"), p.otherKeyOf.Content)
		if err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("got %v", err)
		}
		if made, err := pairIn(t, dir); err != nil || !made.Equal(p.leaf) {
			t.Errorf("%s: %v", fails, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "apiserver.key")); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v: the key has mode %s", err, info.Mode())
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
			t.Errorf("%v: there are %v", err, entries)
		}
	}
}

// TestNobodyElseReplacesThePairMeanwhile: what was renewed after it was read would get its old end again.
func TestNobodyElseReplacesThePairMeanwhile(t *testing.T) {
	dir, _ := host(t, "leaf")
	names, alone := change(dir, "lb.example.com", ""), false
	names.NewKey = func(kind KeyKind) (crypto.Signer, error) {
		other, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		alone = errors.Is(syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
		return NewKey(kind)
	}
	if _, err := names.Change(t.Context()); err != nil || !alone {
		t.Errorf("%v, alone: %v", err, alone)
	}
}

func TestWhatIsNoHostIsNeitherAddedNorDropped(t *testing.T) {
	dir, p := host(t, "leaf")
	for _, name := range []string{
		"lb.example.com:6443", "10.0.0.9:6443", "https://lb.example.com", "lb .example.com", "10.0.0.300", "lb.example.com.", "-a", "a b",
		"0x0a000001", "10.0.0.0x1", "0x", "lb." + strings.Repeat("a", 64) + ".com", "fe80::1%eth0",
	} {
		if _, err := change(dir, name, "").Change(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("add %q: %v", name, err)
		}
		forced := change(dir, "", name)
		forced.Force = true
		for _, drop := range []APIServerNames{change(dir, "", name), forced} {
			if _, err := drop.Change(t.Context()); err == nil || !strings.Contains(err.Error(), strconv.Quote(name)+" is neither") {
				t.Errorf("drop %q: %v", name, err)
			}
		}
	}
	for _, name := range []string{"0.0.0.0", "::", "::ffff:0.0.0.0", "224.0.0.1", "ff02::1", "255.255.255.255"} {
		if changed, err := change(dir, name, "").Change(t.Context()); err == nil {
			t.Errorf("added is %s: %+v", name, changed)
		}
	}
	if changed, err := change(dir, "", "other.example.com,10.0.0.9").Change(t.Context()); err != nil || !changed.Unchanged {
		t.Errorf("drop what is not there: %v, %+v", err, changed)
	}
	if kept, err := pairIn(t, dir); err != nil || !kept.Equal(p.leaf) {
		t.Errorf("the certificate was changed: %v", err)
	}
	if _, err := change(dir, "LB.example.com,*.example.com,my_lb,localhost,fd00::1,2001,0xg,0x1.lb,"+strings.Repeat("a", 63)+".com", "").Change(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheCaseOfANameDoesNotMatter(t *testing.T) {
	dir, p := host(t, "leaf")
	if changed, err := change(dir, "REGISTRY.kurl", "").Change(t.Context()); err != nil || !changed.Unchanged {
		t.Errorf("add what is there: %v, %+v", err, changed)
	}
	if changed, err := change(dir, "", "REGISTRY.kurl").Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
		t.Errorf("drop what is there: %v, %+v", err, changed)
	}
	made, err := pairIn(t, dir)
	if err != nil || len(made.DNSNames) != len(p.leaf.DNSNames)-1 {
		t.Errorf("%v: it is %+v", err, Facts("", made))
	}
	loud := signed(t, &x509.Certificate{
		DNSNames: []string{"KUBERNETES", "OLD-LB.example.com"}, ExtKeyUsage: p.leaf.ExtKeyUsage, NotBefore: now.Add(-Year), NotAfter: now.Add(time.Hour),
	}, p.leafKey, p.ca)
	for name, content := range map[string][]byte{"apiserver.crt": EncodeChain(loud), "apiserver.key": p.leafKeyOf.Content} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := change(dir, "", "kubernetes").Change(t.Context()); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("what programs need is dropped: %v", err)
	}
	if changed, err := change(dir, "", "old-lb.example.com").Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
		t.Errorf("drop what is there: %v, %+v", err, changed)
	}
}

func TestAStrangeNameThatTheCertificateHasMayStayAndMayBeDropped(t *testing.T) {
	dir, p := host(t, "leaf")
	strange := signed(t, &x509.Certificate{
		DNSNames: []string{"lb:6443", "kubernetes"}, ExtKeyUsage: p.leaf.ExtKeyUsage, NotBefore: now.Add(-Year), NotAfter: now.Add(time.Hour),
	}, p.leafKey, p.ca)
	if err := os.WriteFile(filepath.Join(dir, "apiserver.crt"), EncodeChain(strange), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := change(dir, "lb:6443", "").Change(t.Context()); err != nil || !changed.Unchanged {
		t.Errorf("it is there: %v, %+v", err, changed)
	}
	if changed, err := change(dir, "", "lb:6443").Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
		t.Errorf("it is not dropped: %v, %+v", err, changed)
	}
}

func TestNamesThatTheClusterUsesAreDroppedByForceOnly(t *testing.T) {
	for _, name := range []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "10.96.0.1"} {
		dir, _ := host(t, "leaf")
		if _, err := change(dir, name, "").Change(t.Context()); err != nil {
			t.Fatal(err)
		}
		drop := change(dir, "", name)
		if _, err := drop.Change(t.Context()); err == nil || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s is dropped: %v", name, err)
		}
		drop.Force = true
		if changed, err := drop.Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
			t.Errorf("%s is not dropped by force: %v, %+v", name, err, changed)
		}
	}
}

// TestAddressesAreDroppedByForceOnly: on a host, where EKCO does not know which of them programs need. In a pod,
// the installer of kURL drops the address of the former load balancer without --force.
func TestAddressesAreDroppedByForceOnly(t *testing.T) {
	for _, test := range []struct {
		name, serviceHost string
		free              bool
	}{
		{"10.96.0.1", "", false},
		{"10.0.0.9", "", false},
		{"fd00::9", "", false},
		{"127.0.0.1", "", false},
		{"::1", "10.96.0.1", false},
		{"127.0.0.1", "10.96.0.1", false},
		{"10.0.0.9", "10.96.0.1", true},
		{"P1.example.com", "", false},
		{"lb.example.com", "", true},
		{"localhost", "", false},
		{"localhost", "10.96.0.1", true},
	} {
		dir, _ := host(t, "leaf")
		if _, err := change(dir, test.name, "").Change(t.Context()); err != nil {
			t.Fatal(err)
		}
		drop := change(dir, "", test.name)
		drop.ServiceHost, drop.NodeName = test.serviceHost, "p1.example.com"
		if !test.free {
			if changed, err := drop.Change(t.Context()); err == nil || !strings.Contains(err.Error(), "--force") {
				t.Errorf("%s is dropped: %v, %+v", test.name, err, changed)
			}
			drop.Force = true
		}
		if changed, err := drop.Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
			t.Errorf("%s is not dropped: %v, %+v", test.name, err, changed)
		}
	}
}

// TestTheKubeletsServerIsDroppedByForceOnly, also in the installer's pod.
func TestTheKubeletsServerIsDroppedByForceOnly(t *testing.T) {
	for server, name := range map[string]string{
		"https://localhost:6444": "localhost", "https://LB.example.com:6443": "lb.example.com", "https://[fd00:0::9]:6443": "fd00::9",
	} {
		dir := filepath.Join(t.TempDir(), "pki")
		from, _ := host(t, "leaf")
		kubelet := "kind: Config\nclusters: [{name: c, cluster: {server: \"" + server + "\"}}]\nusers: [{name: u, user: {client-certificate: a.pem, client-key: a.pem}}]\n"
		if err := errors.Join(os.Rename(from, dir), os.WriteFile(filepath.Join(filepath.Dir(dir), "kubelet.conf"), []byte(kubelet), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := change(dir+"/", name+",former.example.com", "").Change(t.Context()); err != nil {
			t.Fatal(err)
		}
		if changed, err := change(dir+"/", "", name).Change(t.Context()); err == nil || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s is dropped: %v, %+v", name, err, changed)
		}
		if changed, err := change(dir+"/", "", "former.example.com").Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
			t.Errorf("the name of the former load balancer is not dropped: %v, %+v", err, changed)
		}
		forced := change(dir+"/", "", name)
		forced.Force = true
		if changed, err := forced.Change(t.Context()); err != nil || len(changed.Dropped) != 1 {
			t.Errorf("%s is not dropped by force: %v, %+v", name, err, changed)
		}
	}
}

func TestAnotherCASignsByForceOnly(t *testing.T) {
	dir, p := host(t, "leaf")
	other := signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		NotBefore: now.Add(-Year), NotAfter: now.Add(10 * Year),
	}, nil, Authority{Key: keys()["other"]})
	for name, content := range map[string][]byte{"ca.crt": EncodeChain(other, p.ca.Certificate), "ca.key": p.otherKeyOf.Content} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	add := change(dir, "lb.example.com", "")
	if _, err := add.Change(t.Context()); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("clients may not trust the other CA yet: %v", err)
	}
	add.Force = true
	if _, err := add.Change(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made, err := pairIn(t, dir); err != nil || !SignedBy(made, other) {
		t.Errorf("%v: the CA with the key has not signed", err)
	}
}

// TestACertificateOfAForeignCAIsSignedByThatOfTheCluster, as regen-cert has always done.
func TestACertificateOfAForeignCAIsSignedByThatOfTheCluster(t *testing.T) {
	dir, _ := host(t, "leaf")
	ca := signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		NotBefore: now.Add(-Year), NotAfter: now.Add(10 * Year),
	}, nil, Authority{Key: keys()["ca"]})
	other := newPKI(t, "leaf", now.Add(10*Year))
	for name, content := range map[string][]byte{"ca.crt": EncodeChain(ca), "apiserver.crt": EncodeChain(signed(t, &x509.Certificate{
		DNSNames: []string{"lb"}, ExtKeyUsage: other.leaf.ExtKeyUsage, NotBefore: now.Add(-Year), NotAfter: now.Add(time.Hour),
	}, other.leafKey, Authority{Certificate: &x509.Certificate{Subject: pkix.Name{CommonName: "corporate"}}, Key: keys()["other"]}))} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := change(dir, "lb.example.com", "").Change(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made, err := pairIn(t, dir); err != nil || !SignedBy(made, ca) {
		t.Errorf("%v: the cluster's CA has not signed", err)
	}
}

func TestOfCAsWithTheSameKeyTheOneThatIsValidLongestSigns(t *testing.T) {
	old, renewed := newPKI(t, "leaf", now.Add(-time.Hour)), newPKI(t, "leaf", now.Add(Year))
	for _, bundle := range [][]byte{
		EncodeChain(old.ca.Certificate, renewed.ca.Certificate), EncodeChain(renewed.ca.Certificate, old.ca.Certificate),
	} {
		ca, err := NewAuthority(File{"ca.crt", bundle}, renewed.caKeyFile, now)
		if err != nil || !ca.Certificate.Equal(renewed.ca.Certificate) || len(ca.Others) != 1 || !ca.Others[0].Equal(old.ca.Certificate) {
			t.Errorf("%v: it is %+v", err, ca.Certificate)
		}
	}
}

func TestOfCAsWithTheSameKeyTheOneThatHasSignedIsChosen(t *testing.T) {
	dir, p := host(t, "leaf")
	longer := signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes-2"}, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		NotBefore: now.Add(-Year), NotAfter: now.Add(20 * Year),
	}, nil, p.ca)
	another := signed(t, &x509.Certificate{
		Subject: p.ca.Certificate.Subject, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, NotBefore: now.Add(-Year), NotAfter: now.Add(20 * Year),
	}, nil, Authority{Key: keys()["other"]})
	bundle := EncodeChain(longer, another, p.ca.Certificate)
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := change(dir, "lb.example.com", "").Change(t.Context()); err != nil {
		t.Error(err)
	}
	if made, err := pairIn(t, dir); err != nil || !SignedBy(made, p.ca.Certificate) || len(made.DNSNames) != len(p.leaf.DNSNames)+1 {
		t.Errorf("%v: another CA has signed", err)
	}
	ca, err := NewAuthority(File{"ca.crt", bundle}, p.caKeyFile, now)
	if err != nil {
		t.Fatal(err)
	}
	same := newPKI(t, "leaf", now.Add(15*Year))
	if both, err := NewAuthority(File{"ca.crt", EncodeChain(p.ca.Certificate, same.ca.Certificate)}, p.caKeyFile, now); err != nil || !both.For(p.leaf, now).Certificate.Equal(same.ca.Certificate) {
		t.Errorf("%v: of those that both may have signed, the one that ends first is chosen", err)
	}
	ofAnother := signed(t, &x509.Certificate{DNSNames: []string{"lb"}, NotAfter: now.Add(time.Hour)}, p.leafKey, Authority{Certificate: another, Key: keys()["other"]})
	if chosen := ca.For(ofAnother, now).Certificate; !chosen.Equal(longer) {
		t.Error("a CA without its key is chosen")
	}
	chosen := ca.For(p.leaf, now)
	if again := chosen.For(p.leaf, now); !again.Certificate.Equal(p.ca.Certificate) || len(again.Others) != 2 || !ca.Certificate.Equal(longer) || !ca.Others[1].Equal(p.ca.Certificate) {
		t.Errorf("the other CAs are %d", len(again.Others))
	}
}
