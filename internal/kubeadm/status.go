package kubeadm

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrUnknownShape means that neither kubeadm nor an earlier EKCO wrote such a ClusterStatus, so EKCO does not change it.
var ErrUnknownShape = errors.New("the ClusterStatus in ConfigMap kube-system/kubeadm-config has an unknown form")

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s; edit it by hand", ErrUnknownShape, fmt.Sprintf(format, args...))
}

// The keys of a ClusterStatus, and their lower-case forms. EKCO before 0.26.4 wrote the document in lower case, with
// kind and apiVersion below a separate key (ekco#107).
const (
	keyEndpoints  = "apiEndpoints"
	keyAPIVersion = "apiVersion"
	keyKind       = "kind"
	keyAddress    = "advertiseAddress"
	keyPort       = "bindPort"
	keyTypeMeta   = "typemeta"

	kindClusterStatus = "ClusterStatus"
)

// status is a parsed ClusterStatus. Its nodes keep their positions in the text.
type status struct {
	// endpointsKey and endpoints are nil if the document has no such key.
	endpointsKey, endpoints *yaml.Node
	typeMetaKey, typeMeta   *yaml.Node
	entries                 []entry
	// kind and apiVersion are the values in the document, at the top level or below typemeta.
	kind, apiVersion string
	// misspelt are the keys in lower case, with their correct form.
	misspelt []misspelling
	// others are the top-level keys that EKCO does not know.
	others map[string]*yaml.Node
}

type entry struct {
	key, value *yaml.Node
	endpoint   Endpoint
}

type misspelling struct {
	key    *yaml.Node
	should string
}

// malformed reports whether any part of the document has the form of old EKCO versions.
func (s *status) malformed() bool { return len(s.misspelt) > 0 || s.typeMeta != nil }

// Endpoints returns the API endpoints in a ClusterStatus, by node name, also from a malformed document of an
// old EKCO. An empty text has none. For anything else it returns ErrUnknownShape.
func Endpoints(clusterStatus string) (map[string]Endpoint, error) {
	s, err := parse(clusterStatus)
	if err != nil {
		return nil, err
	}
	return s.byNode(), nil
}

func (s *status) byNode() map[string]Endpoint {
	endpoints := make(map[string]Endpoint, len(s.entries))
	for _, e := range s.entries {
		endpoints[e.key.Value] = e.endpoint
	}
	return endpoints
}

func parse(text string) (*status, error) {
	s := &status{others: make(map[string]*yaml.Node)}
	root, err := decode(text)
	if err != nil || root == nil {
		return s, err
	}
	for key, value := range pairs(root) {
		if err := s.take(key, value); err != nil {
			return nil, err
		}
	}
	if s.kind != "" && s.kind != kindClusterStatus {
		return nil, unknown("its kind is %q", s.kind)
	}
	return s, s.takeEndpoints()
}

// decode returns the mapping of a text with one YAML document, nil if it is empty.
func decode(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, unknown("it is not YAML: %v", err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, unknown("it has more than one document")
	}
	root := document.Content[0]
	if isNull(root) {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, unknown("it is not a mapping")
	}
	return root, check(root)
}

// check returns an error for a document that cannot be edited safely as text.
func check(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return unknown("line %d has an anchor or an alias", node.Line)
	}
	if node.Kind == yaml.MappingNode {
		seen := make(map[string]bool)
		for key := range pairs(node) {
			if key.Kind != yaml.ScalarNode || seen[key.Value] {
				return unknown("line %d has a key twice, or one that is not a string", key.Line)
			}
			seen[key.Value] = true
		}
	}
	for _, child := range node.Content {
		if err := check(child); err != nil {
			return err
		}
	}
	return nil
}

// pairs iterates over the keys and values of a mapping.
func pairs(mapping *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// take stores the value of one top-level key.
func (s *status) take(key, value *yaml.Node) error {
	switch s.spelling(key, keyEndpoints, keyAPIVersion, keyKind) {
	case keyEndpoints:
		if s.endpointsKey != nil {
			return unknown("it has both %s and %s", s.endpointsKey.Value, key.Value)
		}
		s.endpointsKey, s.endpoints = key, value
	case keyAPIVersion:
		return takeString(key, value, &s.apiVersion)
	case keyKind:
		return takeString(key, value, &s.kind)
	case keyTypeMeta:
		s.typeMetaKey, s.typeMeta = key, value
		return s.takeTypeMeta()
	default:
		s.others[key.Value] = value
	}
	return nil
}

// spelling returns the correct form of a key, and notes a key in lower case.
func (s *status) spelling(key *yaml.Node, known ...string) string {
	for _, should := range known {
		if key.Value != should && key.Value == strings.ToLower(should) {
			s.misspelt = append(s.misspelt, misspelling{key, should})
			return should
		}
	}
	return key.Value
}

func takeString(key, value *yaml.Node, into *string) error {
	if value.Kind != yaml.ScalarNode {
		return unknown("%s in line %d is not a string", key.Value, key.Line)
	}
	if *into != "" {
		return unknown("line %d repeats %s", key.Line, key.Value)
	}
	*into = value.Value
	return nil
}

func (s *status) takeTypeMeta() error {
	if s.typeMeta.Kind != yaml.MappingNode {
		return unknown("%s in line %d is not a mapping", keyTypeMeta, s.typeMetaKey.Line)
	}
	for key, value := range pairs(s.typeMeta) {
		var err error
		switch s.spelling(key, keyAPIVersion) {
		case keyAPIVersion:
			err = takeString(key, value, &s.apiVersion)
		case keyKind:
			err = takeString(key, value, &s.kind)
		default:
			err = unknown("%s in line %d is not known", key.Value, key.Line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *status) takeEndpoints() error {
	if s.endpoints == nil || isNull(s.endpoints) {
		return nil
	}
	if s.endpoints.Kind != yaml.MappingNode {
		return unknown("%s in line %d is not a mapping", s.endpointsKey.Value, s.endpointsKey.Line)
	}
	for key, value := range pairs(s.endpoints) {
		endpoint, err := s.readEndpoint(key, value)
		if err != nil {
			return err
		}
		s.entries = append(s.entries, entry{key, value, endpoint})
	}
	return nil
}

func (s *status) readEndpoint(node, value *yaml.Node) (Endpoint, error) {
	var endpoint Endpoint
	if isNull(value) {
		return endpoint, nil
	}
	if value.Kind != yaml.MappingNode {
		return endpoint, unknown("the endpoint of %s in line %d is not a mapping", node.Value, node.Line)
	}
	seen := make(map[string]bool)
	for key, field := range pairs(value) {
		should := s.spelling(key, keyAddress, keyPort)
		if seen[should] {
			return endpoint, unknown("line %d repeats %s", key.Line, should)
		}
		seen[should] = true
		if err := endpoint.take(should, key, field); err != nil {
			return endpoint, err
		}
	}
	return endpoint, nil
}

// take stores the value of one field. It ignores unknown fields.
func (e *Endpoint) take(should string, key, value *yaml.Node) error {
	switch should {
	case keyAddress:
		return takeString(key, value, &e.AdvertiseAddress)
	case keyPort:
		port, err := strconv.ParseUint(value.Value, 10, 16)
		if err != nil {
			return unknown("%s in line %d is %q, not a port", key.Value, key.Line, value.Value)
		}
		e.BindPort = int(port)
	}
	return nil
}
