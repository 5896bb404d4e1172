package primary

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// The components that must be restarted for some new certificates. The API server reads its serving certificate again
// without a restart, and etcd all of its certificates.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

// item is a certificate with its key: one kubeconfig, or two files.
type item struct {
	// path is relative to the directory of Kubernetes. If there are two files, it has no extension.
	path string
	// ca is the CA that signs the certificate, relative to pki.
	ca string
	// component must be restarted for a new certificate. It is "" if no component must be restarted.
	component string
}

// items are all certificates that kubeadm creates and renews.
var items = []item{
	{"admin.conf", "ca", ""},
	{"super-admin.conf", "ca", ""},
	{"controller-manager.conf", "ca", controllerManager},
	{"scheduler.conf", "ca", scheduler},
	{"pki/apiserver", "ca", ""},
	{"pki/apiserver-etcd-client", "etcd/ca", apiServer},
	{"pki/apiserver-kubelet-client", "ca", apiServer},
	{"pki/front-proxy-client", "front-proxy-ca", apiServer},
	{"pki/etcd/server", "etcd/ca", ""},
	{"pki/etcd/peer", "etcd/ca", ""},
	{"pki/etcd/healthcheck-client", "etcd/ca", ""},
}

func itemOf(path string) (item, bool) {
	for _, i := range items {
		if i.path == path {
			return i, true
		}
	}
	return item{}, false
}

func (i item) kubeconfig() bool { return strings.HasSuffix(i.path, ".conf") }

// files returns the files of the item in the order of their replacement. The certificate is the last: after an
// interruption, the old certificate shows that the replacement is not complete.
func (i item) files() []string {
	if i.kubeconfig() {
		return []string{i.path}
	}
	return []string{i.path + ".key", i.path + ".crt"}
}

// mainFile returns the file that has the certificate.
func (i item) mainFile() string { return i.files()[len(i.files())-1] }

// held is an item with the content of its files.
type held struct {
	item
	// files have the order of item.files.
	files []certificates.File
	leaf  *x509.Certificate
	// kubeconfig is set if the item is a kubeconfig.
	kubeconfig certificates.Kubeconfig
}

// errNoPair is the error if a key does not belong to its certificate.
var errNoPair = errors.New("they do not belong together")

// read reads an item. The function where returns the path of each file. The error is fs.ErrNotExist if the certificate
// does not exist. If only the key is unusable, read returns an error and also sets leaf.
func (i item) read(where func(string) string) (held, error) {
	h := held{item: i}
	main, err := certificates.ReadFile(where(i.mainFile()))
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(brokenLink(main.Name), err)
	}
	if err != nil {
		return h, err
	}
	if i.kubeconfig() {
		h.files = []certificates.File{main}
		if h.kubeconfig, err = main.Kubeconfig(); err != nil {
			return h, err
		}
		return h.pair(h.kubeconfig.Certificate, h.kubeconfig.Key)
	}
	key, keyErr := certificates.ReadFile(where(i.files()[0]))
	if errors.Is(keyErr, fs.ErrNotExist) {
		keyErr = fmt.Errorf("read %s: the key of %s does not exist", key.Name, main.Name)
	}
	if keyErr != nil {
		h.leaf, err = main.OneCertificate()
		return h, cmp.Or(err, keyErr)
	}
	h.files = []certificates.File{key, main}
	return h.pair(main, key)
}

// brokenLink returns an error if a directory above the file is a symbolic link whose target cannot be read:
// EKCO's pods mount only /etc/kubernetes.
func brokenLink(path string) error {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		to, err := os.Readlink(dir)
		if err != nil {
			continue
		}
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("read %s: it is a symbolic link to %s, which EKCO cannot read; replace it by the directory", dir, to)
		}
	}
	return nil
}

// pair parses certificate and key, and checks that they belong together.
func (h held) pair(certificate, key certificates.File) (_ held, err error) {
	if h.leaf, err = certificate.OneCertificate(); err != nil {
		return h, err
	}
	signer, err := key.Key()
	if err != nil {
		return h, err
	}
	if err := certificates.CheckKey(h.leaf, certificate, signer, key); err != nil {
		return h, fmt.Errorf("%w: %w", errNoPair, err)
	}
	return h, nil
}

// at returns a function that adds a directory to a path.
func at(dir string) func(string) string {
	return func(path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }
}
