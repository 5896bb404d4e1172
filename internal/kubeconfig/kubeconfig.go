package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"
)

// Change is the change of one cluster's server.
type Change struct {
	// Cluster is the name of the cluster. From is the server that it had before, without user and password.
	Cluster, From string
}

// SetServer returns the kubeconfig with this server in all of its clusters, and the server that each cluster had
// before. Its error says why the kubeconfig cannot be changed.
//
// It changes only the text of the servers. If it cannot, because a server is missing or written in
// an unusual way, it encodes the whole kubeconfig again: that keeps the content, the order and the
// comments, but not the spacing.
func SetServer(content []byte, server string) ([]byte, []Change, error) {
	if err := CheckServer(server); err != nil {
		return nil, nil, err
	}
	document, entries, err := read(content)
	if err != nil {
		return nil, nil, err
	}
	changes := make([]Change, len(entries))
	for i, e := range entries {
		changes[i] = Change{e.name, e.from()}
	}
	want, err := wanted(content, server)
	if err != nil {
		return nil, nil, err
	}
	if changed := spliced(content, entries, server); verifyContent(changed, want, server) == nil {
		return changed, changes, nil
	}
	changed, err := rewritten(content, document, entries, server)
	if err == nil {
		err = verifyContent(changed, want, server)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("set the server: %w", err)
	}
	return changed, changes, nil
}

// entry is one of the clusters.
type entry struct {
	name    string
	cluster *yaml.Node
	// server is the node of the server's value; nil if there is none yet.
	server *yaml.Node
}

func (e entry) from() string {
	if e.server == nil {
		return ""
	}
	return Redacted(resolved(e.server).Value)
}

// read finds the clusters.
func read(content []byte) (*yaml.Node, []entry, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, nil, fmt.Errorf("read the YAML: %w", err)
	}
	if len(document.Content) == 0 {
		return nil, nil, errors.New("it is empty")
	}
	root := resolved(document.Content[0])
	if kind := valueOf(root, "kind"); kind != nil && resolved(kind).Value != "Config" {
		return nil, nil, fmt.Errorf("it is not a kubeconfig: its kind is %q", resolved(kind).Value)
	}
	clusters := valueOf(root, "clusters")
	if clusters == nil || resolved(clusters).Kind != yaml.SequenceNode || len(resolved(clusters).Content) == 0 {
		return nil, nil, errors.New("it has no list of clusters")
	}
	var entries []entry
	for i, item := range resolved(clusters).Content {
		e := entry{cluster: valueOf(resolved(item), "cluster")}
		if e.cluster == nil || resolved(e.cluster).Kind != yaml.MappingNode {
			return nil, nil, fmt.Errorf("entry %d of its clusters has no cluster", i+1)
		}
		if name := valueOf(resolved(item), "name"); name != nil {
			e.name = resolved(name).Value
		}
		e.cluster = resolved(e.cluster)
		if e.server = valueOf(e.cluster, "server"); e.server != nil && resolved(e.server).Kind != yaml.ScalarNode {
			return nil, nil, fmt.Errorf("the server of cluster %q is not a string", e.name)
		}
		entries = append(entries, e)
	}
	return &document, entries, nil
}

// resolved follows an alias.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// valueOf returns the value of a key. It returns nil if mapping is no mapping or has no such key.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// wanted returns the content with the new servers, as decoded YAML.
func wanted(content []byte, server string) (map[string]any, error) {
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("read the YAML: %w", err)
	}
	clusters, _ := values["clusters"].([]any)
	for i := range clusters {
		item, _ := clusters[i].(map[string]any)
		cluster, _ := item["cluster"].(map[string]any)
		if cluster == nil {
			return nil, fmt.Errorf("entry %d of its clusters has no cluster", i+1)
		}
		cluster["server"] = server
	}
	return values, nil
}

// verifyContent returns an error unless a kubeconfig has exactly the wanted content, and client-go reads the
// server.
func verifyContent(content []byte, want map[string]any, server string) error {
	var got map[string]any
	if err := yaml.Unmarshal(content, &got); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return errors.New("more than the servers would change")
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return fmt.Errorf("it is not a kubeconfig: %w", err)
	}
	for name, cluster := range config.Clusters {
		if cluster.Server != server {
			return fmt.Errorf("cluster %q would have server %q", name, cluster.Server)
		}
	}
	return nil
}

// rewritten encodes the whole kubeconfig again.
func rewritten(content []byte, document *yaml.Node, entries []entry, server string) ([]byte, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&yaml.Node{}); err != nil {
		return nil, err
	}
	if decoder.Decode(&yaml.Node{}) == nil {
		return nil, errors.New("it has more than one document")
	}
	for _, e := range entries {
		value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: server}
		if e.server == nil {
			e.cluster.Content = append(e.cluster.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "server"}, value)
			continue
		}
		value.HeadComment, value.LineComment, value.FootComment = e.server.HeadComment, e.server.LineComment, e.server.FootComment
		value.Anchor = e.server.Anchor
		*e.server = *value
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(document), encoder.Close())
	return out.Bytes(), err
}
