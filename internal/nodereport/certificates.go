package nodereport

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Certificate is a certificate on the host.
type Certificate struct {
	Path    string `json:"path"`
	Subject string `json:"subject"`
	// NotAfter is when the certificate, or the first of several in the file, expires.
	NotAfter time.Time `json:"not_after"`
	CA       bool      `json:"ca,omitempty"`
}

const maxCertificates = 40

// The directories with certificates, in addition to pki. Kubeconfigs have certificates too.
const (
	kubernetesDir = "/etc/kubernetes"
	kubeletPKI    = "/var/lib/kubelet/pki"
)

// certificates adds the host's certificates to the report.
func (h Host) certificates(r *Report) {
	var found []Certificate
	for _, path := range h.candidates(r) {
		certificate, err := h.certificate(path)
		switch {
		case errors.Is(err, errNoCertificate):
		case err != nil:
			h.addMissing(r, path, err)
		default:
			found = append(found, certificate)
		}
	}
	r.Certificates = found
	r.keepCertificates(maxCertificates)
	for i := range r.Certificates {
		r.Certificates[i].Path = truncated(r.Certificates[i].Path)
	}
}

// keepCertificates keeps the certificates that expire first, up to the number most, and sorts them by path.
func (r *Report) keepCertificates(most int) {
	slices.SortStableFunc(r.Certificates, func(a, b Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	kept := min(len(r.Certificates), most)
	r.OmittedCertificates += len(r.Certificates) - kept
	r.Certificates = r.Certificates[:kept]
	slices.SortFunc(r.Certificates, func(a, b Certificate) int { return strings.Compare(a.Path, b.Path) })
}

// candidates lists the files that may have certificates, by their paths on the host.
func (h Host) candidates(r *Report) []string {
	var paths []string
	for _, pattern := range []string{kubernetesDir + "/*.conf", kubeletPKI + "/*.crt", kubeletPKI + "/*-current.pem"} {
		if err := h.checkNoLink(filepath.Dir(pattern)); err != nil {
			h.addMissing(r, pattern, err)
			continue
		}
		matches, err := filepath.Glob(filepath.Join(h.Root, pattern))
		if err != nil {
			h.addMissing(r, pattern, err)
		}
		paths = append(paths, matches...)
	}
	pki := filepath.Join(h.Root, kubernetesDir, "pki")
	err := filepath.WalkDir(pki, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a worker may have no pki directory
		case err != nil:
			h.addMissing(r, h.onHost(path), err)
		case !entry.IsDir() && strings.HasSuffix(path, ".crt"):
			paths = append(paths, path)
		case mayBeDirectory(entry):
			if err := h.checkNoLink(h.onHost(path)); err != nil {
				h.addMissing(r, h.onHost(path), err)
			}
		}
		return nil
	})
	if err != nil {
		h.addMissing(r, h.onHost(pki), err)
	}
	for i := range paths {
		paths[i] = h.onHost(paths[i])
	}
	return paths
}

// mayBeDirectory reports whether an entry is a link that may be a directory: links with the extension of a key
// are files.
func mayBeDirectory(entry fs.DirEntry) bool {
	return entry.Type()&fs.ModeSymlink != 0 && !slices.Contains([]string{".key", ".pub"}, filepath.Ext(entry.Name()))
}

func (h Host) onHost(path string) string {
	return "/" + strings.TrimLeft(strings.TrimPrefix(path, h.Root), "/")
}

var errNoCertificate = errors.New("it has no certificate")

func (h Host) certificate(path string) (Certificate, error) {
	content, err := h.readFile(path)
	if err != nil {
		return Certificate{}, err
	}
	if strings.HasSuffix(path, ".conf") {
		if content, err = clientCertificate(content); err != nil {
			return Certificate{}, err
		}
	}
	return parse(path, content)
}

// parse reads the certificates, but no key in the same file.
func parse(path string, content []byte) (Certificate, error) {
	var found Certificate
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Certificate{}, fmt.Errorf("read the certificate: %w", err)
		}
		if found.Path == "" {
			found = Certificate{Path: path, Subject: subject(certificate), NotAfter: certificate.NotAfter, CA: certificate.IsCA}
		}
		if certificate.NotAfter.Before(found.NotAfter) {
			found.NotAfter = certificate.NotAfter
		}
	}
	if found.Path == "" {
		return Certificate{}, errNoCertificate
	}
	return found, nil
}

func subject(certificate *x509.Certificate) string {
	text := certificate.Subject.CommonName
	return text[:min(len(text), 80)]
}

// clientCertificate returns the client certificates in a kubeconfig.
func clientCertificate(content []byte) ([]byte, error) {
	var config struct {
		Users []struct {
			User struct {
				Text string `yaml:"client-certificate-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, errors.New("it is not a kubeconfig") // do not quote an unreadable file, which may be a key
	}
	var all []byte
	for _, user := range config.Users {
		data, err := base64.StdEncoding.DecodeString(user.User.Text)
		if err != nil {
			return nil, errors.New("its client certificate is not base64")
		}
		all = append(all, data...)
	}
	return all, nil
}

// maxFile is the maximum size of a file, and maxLinks the maximum number of links to follow.
const (
	maxFile  = 256 << 10
	maxLinks = 8
)

// readFile reads a file of the host. It follows links as the host does.
func (h Host) readFile(path string) ([]byte, error) {
	for range maxLinks {
		target, err := os.Readlink(filepath.Join(h.Root, path))
		if err != nil {
			break // path is not a link; any other error occurs again below
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	if err := h.checkNoLink(filepath.Dir(path)); err != nil {
		return nil, err
	}
	info, err := os.Lstat(filepath.Join(h.Root, path))
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it has %d bytes", info.Size())
	}
	return os.ReadFile(filepath.Join(h.Root, path))
}
