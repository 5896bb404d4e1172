package certificates

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

// Manifest is what EKCO reads of a static pod's manifest.
type Manifest struct {
	Namespace, Name string
	Annotations     map[string]string
}

// Manifest reads the manifest of a static pod: a single Pod.
func (f File) Manifest() (Manifest, error) {
	if len(bytes.TrimSpace(f.Content)) == 0 {
		return Manifest{}, f.fail("it is empty")
	}
	var read struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name        string            `yaml:"name"`
			Namespace   string            `yaml:"namespace"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"metadata"`
	}
	if err := f.yaml(&read); err != nil {
		return Manifest{}, f.fail("it is no manifest")
	}
	switch {
	case read.Kind != "Pod" || read.APIVersion != "v1":
		return Manifest{}, f.fail("it is the manifest of no Pod of v1")
	case read.Metadata.Name == "":
		return Manifest{}, f.fail("its Pod has no name")
	}
	return Manifest{read.Metadata.Namespace, read.Metadata.Name, read.Metadata.Annotations}, nil
}

// Annotated returns the manifest with the annotation of its pod set, and all else as it was but
// for the layout: the kubelet makes another pod of it.
func (f File) Annotated(key, value string) ([]byte, error) {
	if _, err := f.Manifest(); err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := f.yaml(&document); err != nil || len(document.Content) != 1 {
		return nil, f.fail("it is no manifest")
	}
	metadata, err := child(document.Content[0], "metadata")
	if err != nil {
		return nil, f.fail("its metadata cannot be changed: %w", err)
	}
	annotations, err := child(metadata, "annotations")
	if err != nil {
		return nil, f.fail("its annotations cannot be changed: %w", err)
	}
	annotation, err := child(annotations, key)
	if err != nil && annotation == nil {
		return nil, f.fail("its annotations cannot be changed: %w", err)
	}
	*annotation = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: yaml.DoubleQuotedStyle}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&document), encoder.Close()); err != nil {
		return nil, f.fail("write it with another annotation: %w", err)
	}
	return out.Bytes(), nil
}

// child returns the value of a key of a mapping, and adds an empty mapping if there is none. A
// value that is no mapping is returned with an error.
func child(of *yaml.Node, key string) (*yaml.Node, error) {
	if of.Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value != key {
			continue
		}
		value := of.Content[i+1]
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			*value = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		if value.Kind != yaml.MappingNode {
			return value, errors.New("it is no mapping")
		}
		return value, nil
	}
	value := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	of.Content = append(of.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	return value, nil
}
