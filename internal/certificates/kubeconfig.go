package certificates

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Kubeconfig has the certificates and keys of a kubeconfig's current context.
type Kubeconfig struct {
	// User is the name of the context's user. Server is the URL of the API server of the context's cluster.
	User, Server string
	// Certificate and Key belong to the user, and CA to the cluster. Their names contain the file and the field.
	Certificate, Key, CA File
	// Others are the certificates of other users.
	Others []File
}

type kubeconfig struct {
	Kind     string `yaml:"kind"`
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string `yaml:"name"`
		Context struct {
			User    string `yaml:"user"`
			Cluster string `yaml:"cluster"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []kubeconfigCluster `yaml:"clusters"`
	Users    []kubeconfigUser    `yaml:"users"`
}

type kubeconfigCluster struct {
	Name    string `yaml:"name"`
	Cluster struct {
		Server string `yaml:"server"`
		CA     string `yaml:"certificate-authority-data"`
	} `yaml:"cluster"`
}

type kubeconfigUser struct {
	Name string `yaml:"name"`
	User struct {
		Certificate string `yaml:"client-certificate-data"`
		Key         string `yaml:"client-key-data"`
		// ByPath is set in the kubelet's kubeconfig: the kubelet renews the file at this path itself.
		ByPath string `yaml:"client-certificate"`
	} `yaml:"user"`
}

// current returns the user and the cluster of the current context. If there is only one user and one cluster, it
// does not read the context.
func (k kubeconfig) current() (user kubeconfigUser, cluster kubeconfigCluster, err error) {
	if len(k.Users) == 1 && len(k.Clusters) == 1 {
		return k.Users[0], k.Clusters[0], nil
	}
	for _, context := range k.Contexts {
		if context.Name != k.Current {
			continue
		}
		u := slices.IndexFunc(k.Users, func(u kubeconfigUser) bool { return u.Name == context.Context.User })
		c := slices.IndexFunc(k.Clusters, func(c kubeconfigCluster) bool { return c.Name == context.Context.Cluster })
		if u >= 0 && c >= 0 {
			return k.Users[u], k.Clusters[c], nil
		}
	}
	return user, cluster, fmt.Errorf("it has %d users and %d clusters, and current-context does not name one of each; set it with: kubectl config use-context", len(k.Users), len(k.Clusters))
}

// Kubeconfig parses a kubeconfig that contains its certificate and key.
func (f File) Kubeconfig() (Kubeconfig, error) {
	if len(bytes.TrimSpace(f.Content)) == 0 {
		return Kubeconfig{}, f.fail("it is empty")
	}
	var read kubeconfig
	if err := f.yaml(&read); err != nil {
		return Kubeconfig{}, f.fail("it is not a kubeconfig")
	}
	user, cluster, err := read.current()
	switch {
	case read.Kind != "Config":
		return Kubeconfig{}, f.fail("it is not a kubeconfig: its kind is not Config")
	case err != nil:
		return Kubeconfig{}, f.fail("%w", err)
	case user.User.Certificate == "" && user.User.ByPath != "":
		return Kubeconfig{}, f.fail("its client certificate is in another file")
	}
	found := Kubeconfig{User: user.Name, Server: cluster.Cluster.Server}
	for _, data := range []struct {
		of   string
		text string
		into *File
	}{
		{"client-certificate-data", user.User.Certificate, &found.Certificate},
		{"client-key-data", user.User.Key, &found.Key},
		{"certificate-authority-data", cluster.Cluster.CA, &found.CA},
	} {
		content, err := base64.StdEncoding.DecodeString(data.text)
		if err != nil || len(content) == 0 {
			return Kubeconfig{}, f.fail("%s is missing, or not in base 64", data.of)
		}
		*data.into = File{Name: f.Name + " (" + data.of + ")", Content: content}
	}
	for _, other := range read.Users {
		content, err := base64.StdEncoding.DecodeString(other.User.Certificate)
		if other.Name != user.Name && err == nil && len(content) > 0 {
			found.Others = append(found.Others, File{Name: f.Name + " (another user)", Content: content})
		}
	}
	return found, nil
}

// WithPair returns the kubeconfig with another certificate and key of its user. All other data stays. The layout also
// stays if the old certificate and key each occur exactly once, on one line.
func (f File) WithPair(certificate, key []byte) ([]byte, error) {
	before, err := f.Kubeconfig()
	if err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	content := f.Content
	for _, part := range [][2]string{
		{encode(before.Certificate.Content), encode(certificate)}, {encode(before.Key.Content), encode(key)},
	} {
		if bytes.Count(content, []byte(part[0])) != 1 {
			return f.rewritten(before.User, encode(certificate), encode(key))
		}
		content = bytes.Replace(content, []byte(part[0]), []byte(part[1]), 1)
	}
	return content, nil
}

// rewritten encodes the kubeconfig again, in the usual layout.
func (f File) rewritten(name, certificate, key string) ([]byte, error) {
	var document yaml.Node
	if err := f.yaml(&document); err != nil || len(document.Content) != 1 {
		return nil, f.fail("it is not a kubeconfig")
	}
	users, err := member(document.Content[0], "users")
	if err != nil || users.Kind != yaml.SequenceNode {
		return nil, f.fail("its user has an unusual syntax that EKCO cannot change")
	}
	i := slices.IndexFunc(users.Content, func(user *yaml.Node) bool {
		named, err := member(user, "name")
		return err == nil && named.Value == name
	})
	if i < 0 {
		return nil, f.fail("its user has an unusual syntax that EKCO cannot change")
	}
	user, err := member(users.Content[i], "user")
	for name, value := range map[string]string{"client-certificate-data": certificate, "client-key-data": key} {
		var data *yaml.Node
		if err == nil {
			data, err = member(user, name)
		}
		if err != nil {
			return nil, f.fail("its user has an unusual syntax that EKCO cannot change")
		}
		*data = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	}
	content, err := encoded(&document)
	if err != nil {
		return nil, f.fail("encode the kubeconfig with the new certificate: %w", err)
	}
	return content, nil
}

// yaml decodes exactly one document. Callers drop the decoder's errors, which may quote a key.
func (f File) yaml(into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(f.Content))
	if err := decoder.Decode(into); err != nil {
		return err
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one document")
	}
	return nil
}
