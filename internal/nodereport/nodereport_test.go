package nodereport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// host is a directory with the files of one.
type host struct {
	t    *testing.T
	root string
}

func newHost(t *testing.T) host {
	t.Helper()
	return host{t, t.TempDir()}
}

func (h host) write(path, content string) {
	h.t.Helper()
	at := filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) link(path, target string) {
	h.t.Helper()
	if err := os.Symlink(target, filepath.Join(h.root, path)); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) read() Report {
	h.t.Helper()
	return Host{
		Root: h.root, Kernel: func() (string, error) { return "6.1.0", nil },
		ServerTime: func(context.Context) (time.Time, error) { return time.Now().Add(-90 * time.Second), nil },
	}.Read(h.t.Context())
}

// state lists everything below the root, with its content and times.
func (h host) state() (all []string) {
	h.t.Helper()
	err := filepath.WalkDir(h.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		all = append(all, fmt.Sprint(path, info.Mode(), info.Size(), info.ModTime()))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// certificate returns a certificate and its key, in PEM.
func certificate(t *testing.T, name string, expires time.Time, ca bool) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: expires.Add(-time.Hour),
		NotAfter: expires, IsCA: ca, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}

func kubeconfig(cert, key string) string {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {client-certificate-data: %s, client-key-data: %s}\n", encode(cert), encode(key))
}

func TestAPrimaryIsReadAndLeftAsItWas(t *testing.T) {
	h := newHost(t)
	var secrets []string
	cert := func(path, name string, expires time.Time, ca bool) string {
		c, key := certificate(t, name, expires, ca)
		secrets = append(secrets, key)
		if path != "" {
			h.write(path, c)
			h.write(strings.TrimSuffix(path, ".crt")+".key", key)
		}
		return c + key
	}
	cert("/etc/kubernetes/pki/ca.crt", "kubernetes", noon.AddDate(9, 0, 0), true)
	cert("/etc/kubernetes/pki/apiserver.crt", "kube-apiserver", noon, false)
	cert("/etc/kubernetes/pki/etcd/server.crt", "p1", noon.AddDate(0, 1, 0), false)
	c, key := certificate(t, "kubernetes-admin", noon.AddDate(0, 2, 0), false)
	secrets = append(secrets, key)
	h.write("/etc/kubernetes/admin.conf", kubeconfig(c, key))
	h.write("/etc/kubernetes/kubelet.conf", "apiVersion: v1\nusers:\n- user: {client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem}\n")
	h.write("/var/lib/kubelet/pki/kubelet-client-2026-01-01.pem", cert("", "system:node:p1", noon.AddDate(0, 3, 0), false))
	h.link("/var/lib/kubelet/pki/kubelet-client-current.pem", "/var/lib/kubelet/pki/kubelet-client-2026-01-01.pem")
	h.write("/var/lib/etcd/member/x", "")
	h.write("/proc/1/mounts", "/dev/rbd0 /var/lib/kubelet/plugins/a/globalmount ext4 rw 0 0\n/dev/rbd0 /var/lib/kubelet/pods/b/mount ext4 rw 0 0\n"+
		"10.0.0.1:6789:/ /mnt/with\\040space ceph rw 0 0\n/dev/sda1 / ext4 rw 0 0\nbroken\n")
	before := h.state()
	r := h.read()
	if !slices.Equal(h.state(), before) {
		t.Error("something was changed")
	}
	wantCerts := []Certificate{
		{"/etc/kubernetes/admin.conf", "kubernetes-admin", noon.AddDate(0, 2, 0), false},
		{"/etc/kubernetes/pki/apiserver.crt", "kube-apiserver", noon, false},
		{"/etc/kubernetes/pki/ca.crt", "kubernetes", noon.AddDate(9, 0, 0), true},
		{"/etc/kubernetes/pki/etcd/server.crt", "p1", noon.AddDate(0, 1, 0), false},
		{"/var/lib/kubelet/pki/kubelet-client-current.pem", "system:node:p1", noon.AddDate(0, 3, 0), false},
	}
	if diff := cmp.Diff(wantCerts, r.Certificates); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	wantCeph := []Mount{{"/dev/rbd0", "/var/lib/kubelet/plugins/a/globalmount", "ext4"}, {"10.0.0.1:6789:/", "/mnt/with space", "ceph"}}
	if diff := cmp.Diff(wantCeph, r.Ceph); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if r.Kernel != "6.1.0" || *r.ClockAhead != journal.Duration(90*time.Second) || len(r.Missing) > 0 {
		t.Errorf("kernel %s, clock %v, missing %v", r.Kernel, *r.ClockAhead, r.Missing)
	}
	if len(r.Disks) != 1 || r.Disks[0].Directory != "/var/lib/etcd" || r.Disks[0].Size == 0 || r.Disks[0].Free >= r.Disks[0].Size {
		t.Errorf("disks %+v", r.Disks)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if text := strings.Split(secret, "\n")[1]; strings.Contains(string(raw), text) {
			t.Error("a key is in the report")
		}
	}
	if again, err := Of(raw); err != nil || !cmp.Equal(r, again) {
		t.Errorf("it reads back as %+v, %v", again, err)
	}
}

func TestWhatCannotBeHadIsSaidBesideWhatCan(t *testing.T) {
	h := newHost(t)
	h.write("/etc/kubernetes/pki/broken.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	h.write("/etc/kubernetes/pki/empty.crt", "")
	h.write("/etc/kubernetes/pki/large.crt", strings.Repeat("x", maxFile+1))
	h.write("/etc/kubernetes/secret.conf", "password: [hunter2")
	h.write("/etc/kubernetes/pki/loop", "")
	h.link("/etc/kubernetes/pki/away.crt", "/nowhere")
	h.link("/etc/kubernetes/pki/round.crt", "round.crt")
	c, _ := certificate(t, "fine", noon, false)
	h.write("/etc/kubernetes/pki/fine.crt", c)
	broken := errors.New("broken")
	r := Host{
		Root: h.root, Kernel: func() (string, error) { return "", broken },
		ServerTime: func(context.Context) (time.Time, error) { return time.Time{}, broken },
	}.Read(t.Context())
	var missing []string
	for _, m := range r.Missing {
		missing = append(missing, m.What)
		if strings.Contains(m.Why, "hunter2") {
			t.Error("a secret is in the report")
		}
		if strings.Contains(m.Why, h.root) {
			t.Errorf("of %s is said where the pod has it: %s", m.What, m.Why)
		}
	}
	pki := "/etc/kubernetes/pki/"
	want := []string{"kernel", "clock", "/etc/kubernetes/secret.conf", pki + "away.crt", pki + "broken.crt", pki + "large.crt", pki + "round.crt", "mounted Ceph volumes"}
	if !slices.Equal(missing, want) {
		t.Errorf("missing are %q, want %q", missing, want)
	}
	if len(r.Certificates) != 1 || r.Certificates[0].Subject != "fine" || len(r.Disks) != 0 || r.ClockAhead != nil {
		t.Errorf("the rest is %+v", r)
	}
}

// TestWhatMayNotBeReadIsSaidToNeedMoreThanRoot: whoever reads it is root, and can read it.
func TestWhatMayNotBeReadIsSaidToNeedMoreThanRoot(t *testing.T) {
	refused := fmt.Errorf("read the cluster's CA: %w", &fs.PathError{Op: "open", Path: "/host/etc/kubernetes/pki/ca.crt", Err: syscall.EACCES})
	want := "read the cluster's CA: open /etc/kubernetes/pki/ca.crt: permission denied; the report runs as root without capabilities; the file's mode or SELinux forbids that"
	if got := (Host{Root: "/host"}).reason(refused); got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

// TestOfAFileWithSeveralCertificatesTheEarliestEndCountsAndTheFirstName: it is of use until then.
func TestOfAFileWithSeveralCertificatesTheEarliestEndCountsAndTheFirstName(t *testing.T) {
	leaf, _ := certificate(t, "leaf", noon.AddDate(1, 0, 0), false)
	above, _ := certificate(t, "above", noon, true)
	root, _ := certificate(t, "root", noon.AddDate(9, 0, 0), true)
	h := newHost(t)
	h.write("/etc/kubernetes/pki/chain.crt", leaf+above+root)
	want := []Certificate{{"/etc/kubernetes/pki/chain.crt", "leaf", noon, false}}
	if diff := cmp.Diff(want, h.read().Certificates); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
}

// TestWhatIsNoFileIsNotOpened: a pipe would hang for ever.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	h := newHost(t)
	c, _ := certificate(t, "fine", noon, false)
	h.write("/etc/kubernetes/pki/dir.crt/fine.crt", c)
	if err := unix.Mkfifo(filepath.Join(h.root, "/etc/kubernetes/pki/pipe.crt"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("/proc/1/mounts", "ceph-fuse /mnt fuse.ceph-fuse rw 0 0\n")
	r := h.read()
	if want := []Missing{{"/etc/kubernetes/pki/pipe.crt", "it is not a file"}}; !slices.Equal(r.Missing, want) || len(r.Certificates) != 1 || len(r.Ceph) != 1 {
		t.Errorf("it has %+v, %+v, and lacks %+v", r.Certificates, r.Ceph, r.Missing)
	}
}

// TestAWorkerHasNoneOfThePrimariesFilesAndLacksNothing: also of its own, links lead on.
func TestAWorkerHasNoneOfThePrimariesFilesAndLacksNothing(t *testing.T) {
	h := newHost(t)
	c, _ := certificate(t, "system:node:w1", noon, false)
	h.write("/var/lib/kubelet/pki/kubelet-client-1.pem", c)
	h.link("/var/lib/kubelet/pki/kubelet-client-newest.pem", "kubelet-client-1.pem")
	h.link("/var/lib/kubelet/pki/kubelet-client-current.pem", "./kubelet-client-newest.pem")
	h.write("/proc/1/mounts", "")
	if r := h.read(); len(r.Missing) > 0 || len(r.Certificates) != 1 || r.Certificates[0].Subject != "system:node:w1" {
		t.Errorf("it has %+v, and lacks %+v", r.Certificates, r.Missing)
	}
}

// TestAnAPIServerThatDoesNotAnswerLeavesTheRest: a program has a third of a minute for all.
func TestAnAPIServerThatDoesNotAnswerLeavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Host{
			Root: t.TempDir(), Kernel: func() (string, error) { return "6.1.0", nil },
			ServerTime: func(ctx context.Context) (time.Time, error) {
				<-ctx.Done()
				return time.Time{}, ctx.Err()
			},
		}
		r, err := h.ReadWithin(t.Context(), 10*time.Second)
		if err != nil || r.Kernel != "6.1.0" || r.ClockAhead != nil || r.Missing[0].What != "clock" {
			t.Errorf("it is %+v, %v", r, err)
		}
	})
}

// TestADirectoryThatIsALinkIsSaidToLack: what is behind it is not in the pod.
func TestADirectoryThatIsALinkIsSaidToLack(t *testing.T) {
	h := newHost(t)
	c, _ := certificate(t, "fine", noon, false)
	h.write("/etc/kubernetes/pki/fine.crt", c)
	h.write("/proc/1/mounts", "")
	h.write("/var/lib/x", "")
	h.link("/etc/kubernetes/pki/etcd", "/data/pki")
	h.link("/etc/kubernetes/pki/sa.key", "/data/sa.key")
	h.link("/var/lib/etcd", "/data/etcd")
	h.link("/var/lib/ekco", "/")
	h.link("/var/lib/kubelet", "/data/kubelet")
	got := map[string]string{}
	for _, m := range h.read().Missing {
		got[m.What] = m.Why
	}
	says := func(path, target string) string {
		return path + " is a link to " + target + ", which the report cannot see"
	}
	want := map[string]string{
		"disk of /var/lib/ekco":              says("/var/lib/ekco", "/"),
		"disk of /var/lib/etcd":              says("/var/lib/etcd", "/data/etcd"),
		"/var/lib/kubelet/pki/*.crt":         says("/var/lib/kubelet", "/data/kubelet"),
		"/var/lib/kubelet/pki/*-current.pem": says("/var/lib/kubelet", "/data/kubelet"),
		"/etc/kubernetes/pki/etcd":           says("/etc/kubernetes/pki/etcd", "/data/pki"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	h = newHost(t)
	h.write("/etc/kubernetes/x", "")
	h.link("/etc/kubernetes/pki", "/data/pki")
	if r := h.read(); !slices.ContainsFunc(r.Missing, func(m Missing) bool { return m.Why == says("/etc/kubernetes/pki", "/data/pki") }) {
		t.Errorf("missing are %+v", r.Missing)
	}
}

// TestALinkLeadsToNoFileThatIsNotTheHosts: what the pod has at that place is the image's.
func TestALinkLeadsToNoFileThatIsNotTheHosts(t *testing.T) {
	h := newHost(t)
	c, _ := certificate(t, "the image's", noon, false)
	outside := filepath.Join(filepath.Dir(h.root), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "x.crt"), []byte(c), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("/etc/kubernetes/pki/empty.crt", "")
	h.write("/var/lib/x", "")
	h.link("/var/lib/certs", outside)
	h.link("/etc/kubernetes/pki/below.crt", "/var/lib/certs/x.crt")
	h.link("/etc/kubernetes/pki/above.crt", "/../outside/x.crt")
	r := h.read()
	lacks := slices.ContainsFunc(r.Missing, func(m Missing) bool {
		return m.What == "/etc/kubernetes/pki/below.crt" && strings.HasPrefix(m.Why, "/var/lib/certs is a link to ")
	})
	if len(r.Certificates) > 0 || !lacks {
		t.Errorf("certificates %+v, missing %+v", r.Certificates, r.Missing)
	}
}

// TestTheLargestReportGoesOnRecord: a host can have any number of certificates and volumes.
func TestTheLargestReportGoesOnRecord(t *testing.T) {
	h := newHost(t)
	c, _ := certificate(t, strings.Repeat("n", 60), noon, false)
	var mounted strings.Builder
	for i := range 200 {
		h.write(fmt.Sprintf("/etc/kubernetes/pki/%s-%03d.crt", strings.Repeat("p", 40), i), c)
		fmt.Fprintf(&mounted, "/dev/rbd%d /var/lib/kubelet/plugins/kubernetes.io/csi/%s/globalmount ext4 rw 0 0\n", i, strings.Repeat("v", 90))
		h.write(fmt.Sprintf("/etc/kubernetes/%s-%03d.conf", strings.Repeat("c", 100), i), "[")
	}
	h.write("/proc/1/mounts", mounted.String())
	r := h.read()
	if r.OmittedCertificates != 160 || r.OmittedCephMounts != 185 || len(r.Missing) != maxMissing {
		t.Errorf("%d more certificates, %d more volumes, %d missing", r.OmittedCertificates, r.OmittedCephMounts, len(r.Missing))
	}
	var said strings.Builder
	if err := hosttask.Say(&said, r, nil); err != nil || strings.Contains(said.String(), `"failed"`) {
		t.Errorf("%v: %.200s", err, said.String())
	}
}

// TestOfTooManyCertificatesThoseAreToldThatExpireFirst: a table says of all when the first does.
func TestOfTooManyCertificatesThoseAreToldThatExpireFirst(t *testing.T) {
	var r Report
	for i := range 50 {
		r.Certificates = append(r.Certificates, Certificate{Path: fmt.Sprintf("/%02d", i), NotAfter: noon.AddDate(0, 0, -i)})
	}
	r.keepCertificates(20)
	r.keepCertificates(10)
	var paths []string
	for _, c := range r.Certificates {
		paths = append(paths, c.Path)
	}
	if want := []string{"/40", "/41", "/42", "/43", "/44", "/45", "/46", "/47", "/48", "/49"}; !slices.Equal(paths, want) || r.OmittedCertificates != 40 {
		t.Errorf("told are %q, and %d more", paths, r.OmittedCertificates)
	}
	h := newHost(t)
	late, _ := certificate(t, "late", noon, false)
	soon, _ := certificate(t, "soon", noon.Add(-time.Minute), false)
	for i := range 60 {
		h.write(fmt.Sprintf("/etc/kubernetes/pki/%s-%03d.crt", strings.Repeat("&", 200), i), late)
	}
	h.write("/etc/kubernetes/pki/z.crt", soon)
	if r := h.read(); r.OmittedCertificates < 21 || r.Certificates[len(r.Certificates)-1].Subject != "soon" || len(r.Certificates)+r.OmittedCertificates != 61 {
		t.Errorf("told are %+v, and %d more", r.Certificates, r.OmittedCertificates)
	}
}

// TestAReportWithTheLongestNamesGoesOnRecord: they are longer as JSON than on the host.
func TestAReportWithTheLongestNamesGoesOnRecord(t *testing.T) {
	h := newHost(t)
	c, _ := certificate(t, strings.Repeat("&", 60), noon, false)
	var mounted strings.Builder
	for i := range 40 {
		h.write(fmt.Sprintf("/etc/kubernetes/pki/%03d%s.crt", i, strings.Repeat("&", 240)), c)
		h.write(fmt.Sprintf("/etc/kubernetes/%03d%s.conf", i, strings.Repeat("&", 240)), "[")
		fmt.Fprintf(&mounted, "/dev/rbd%d%s /mnt/%s ceph rw 0 0\n", i, strings.Repeat("s", 3000), strings.Repeat("&", 3000))
	}
	h.write("/proc/1/mounts", mounted.String())
	r := h.read()
	var said strings.Builder
	if err := hosttask.Say(&said, r, nil); err != nil || strings.Contains(said.String(), `"failed"`) {
		t.Errorf("%v: %.200s", err, said.String())
	}
	if len(r.Ceph)+r.OmittedCephMounts != 40 || len(r.Certificates)+r.OmittedCertificates != 40 || len(r.Missing) == 0 {
		t.Errorf("%d and %d volumes, %d and %d certificates, %d missing", len(r.Ceph), r.OmittedCephMounts, len(r.Certificates), r.OmittedCertificates, len(r.Missing))
	}
}

// TestOfManyCertificatesThoseAreToldThatExpireFirst: also where their paths come last, and
// where the report is too large even for as many as it may have.
func TestOfManyCertificatesThoseAreToldThatExpireFirst(t *testing.T) {
	for _, length := range []int{1, 240} {
		h := newHost(t)
		for i := range 60 {
			c, _ := certificate(t, "n", noon.AddDate(0, 0, -i), false)
			h.write(fmt.Sprintf("/etc/kubernetes/pki/%02d%s.crt", i, strings.Repeat("&", length)), c)
		}
		r := h.read()
		told := len(r.Certificates)
		if told == 0 || told > maxCertificates || length > 1 == (told == maxCertificates) || told+r.OmittedCertificates != 60 {
			t.Fatalf("%d certificates are told, and %d more", told, r.OmittedCertificates)
		}
		for i, c := range r.Certificates {
			if number := 60 - told + i; !strings.Contains(c.Path, fmt.Sprintf("/%02d&", number)) {
				t.Errorf("of %d told, number %d is %s", told, i, c.Path)
			}
		}
	}
}

func TestThePathsOfATaskAreNarrowAndMakeNothing(t *testing.T) {
	for _, path := range Paths() {
		if path.Write || path.Type == "" || strings.HasSuffix(path.Type, "OrCreate") || path.At != Root+path.Host {
			t.Errorf("%+v", path)
		}
	}
}

func TestTheClockIsTheAPIServersWhoIsKnownByTheClustersCA(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", noon.Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	h := newHost(t)
	if _, err := ThisHost(h.root).serverTime(t.Context(), server.URL); err == nil {
		t.Error("without a CA a server is believed")
	}
	other, _ := certificate(t, "other", noon, true)
	h.write("/etc/kubernetes/pki/ca.crt", other)
	if _, err := ThisHost(h.root).serverTime(t.Context(), server.URL); err == nil {
		t.Error("any server is believed")
	}
	h.write("/etc/kubernetes/pki/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	got, err := ThisHost(h.root).serverTime(t.Context(), server.URL)
	if err != nil || got.Sub(noon) != 500*time.Millisecond {
		t.Errorf("it is %s, %v", got, err)
	}
}

// TestAClockIsToldThatIsWrongByYears: by it, the API server's certificate is not valid. Who
// shows another cluster's is not believed all the same.
func TestAClockIsToldThatIsWrongByYears(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", noon.Format(http.TimeFormat))
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	cert, key := certificate(t, "kube-apiserver", time.Now().AddDate(-2, 0, 0), true)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	h := newHost(t)
	h.write("/etc/kubernetes/pki/real.crt", cert)
	h.link("/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/real.crt")
	if got, err := ThisHost(h.root).serverTime(t.Context(), server.URL); err != nil || got.Sub(noon) != 500*time.Millisecond {
		t.Errorf("it is %s, %v", got, err)
	}
	other, _ := certificate(t, "kube-apiserver", time.Now().AddDate(-2, 0, 0), true)
	h.write("/etc/kubernetes/pki/real.crt", other)
	if _, err := ThisHost(h.root).serverTime(t.Context(), server.URL); err == nil {
		t.Error("any server is believed")
	}
}

// TestAFileSystemThatHangsKeepsNobodyWaiting: the program's pod must end well, whatever its
// host is like.
func TestAFileSystemThatHangsKeepsNobodyWaiting(t *testing.T) {
	hangs := make(chan struct{})
	h := Host{
		Root: t.TempDir(), Kernel: func() (string, error) { <-hangs; return "6.1.0", nil },
		ServerTime: func(context.Context) (time.Time, error) { return time.Now(), nil },
	}
	_, err := h.ReadWithin(t.Context(), 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "takes longer than 10ms") {
		t.Errorf("the error is %v", err)
	}
	close(hangs)
	if r, err := h.ReadWithin(t.Context(), time.Minute); err != nil || r.Kernel != "6.1.0" {
		t.Errorf("it is %+v, %v", r, err)
	}
}

func TestWhatAKubeletSaysOfItselfIsBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	node, uid, err := NodeOf(json.RawMessage(`{"metadata":{"uid":"u"},"status":{"nodeInfo":{"kernelVersion":"` + long + `","kubeletVersion":"` + long +
		`","containerRuntimeVersion":"` + long + `","osImage":"` + long + `"}}}`))
	if short := long[:maxVersion]; err != nil || uid != "u" || node != (Node{Kernel: short, Kubelet: short, ContainerRuntime: short, OSImage: short}) {
		t.Errorf("it is %+v of %s, %v", node, uid, err)
	}
	if _, _, err := NodeOf(json.RawMessage(`{"metadata":{"uid":7}}`)); err == nil {
		t.Error("what is no Node passes for one")
	}
}
