package certificates

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Manifest is the part of a static pod's manifest that EKCO reads.
type Manifest struct {
	Namespace, Name string
	Annotations     map[string]string
	Containers      []Container
}

// Container is a container in a static pod's manifest.
type Container struct {
	// Probe is the URL of the readiness probe, or else of the liveness probe. It is empty if neither is an httpGet probe.
	Name, Probe string
	// Command is the container's command with its arguments.
	Command []string
	// Startup is the time limit of the startup probe, or 0 if there is no startup probe.
	Startup time.Duration
}

// Component returns the container that runs a component: the only container, or the container with the component's
// name, which kubeadm uses.
func (m Manifest) Component(name string) (Container, error) {
	i := slices.IndexFunc(m.Containers, func(c Container) bool { return c.Name == name })
	if len(m.Containers) == 1 {
		i = 0
	}
	if i < 0 {
		return Container{}, fmt.Errorf("the manifest of pod %s has %d containers and none is named %s, so EKCO cannot tell which one to check; rename the right one",
			m.Name, len(m.Containers), name)
	}
	return m.Containers[i], nil
}

// Flag returns the value of a flag of the command, or "". If the flag occurs several times, it returns the last value.
func (c Container) Flag(name string) (last string) {
	for i, arg := range c.Command {
		if value, is := strings.CutPrefix(arg, name+"="); is {
			last = value
		} else if arg == name && i+1 < len(c.Command) {
			last = c.Command[i+1]
		}
	}
	return last
}

// Manifest parses the manifest of a static pod: a single Pod.
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
		Spec struct {
			Containers []container `yaml:"containers"`
		} `yaml:"spec"`
	}
	if err := f.yaml(&read); err != nil {
		return Manifest{}, f.fail("it is not a manifest")
	}
	switch {
	case read.Kind != "Pod" || read.APIVersion != "v1":
		return Manifest{}, f.fail("it is not the manifest of a v1 Pod")
	case read.Metadata.Name == "":
		return Manifest{}, f.fail("its Pod has no name")
	}
	manifest := Manifest{Namespace: read.Metadata.Namespace, Name: read.Metadata.Name, Annotations: read.Metadata.Annotations}
	for _, c := range read.Spec.Containers {
		manifest.Containers = append(manifest.Containers, Container{c.Name, c.probe(), slices.Concat(c.Command, c.Args), c.Starts.time()})
	}
	return manifest, nil
}

type container struct {
	Name  string `yaml:"name"`
	Ports []struct {
		Name string `yaml:"name"`
		Port string `yaml:"containerPort"`
	} `yaml:"ports"`
	Command []string `yaml:"command"`
	Args    []string `yaml:"args"`
	Ready   probe    `yaml:"readinessProbe"`
	Lives   probe    `yaml:"livenessProbe"`
	Starts  *startup `yaml:"startupProbe"`
}

// startup has the fields of a startup probe that limit its time.
type startup struct {
	Delay    int `yaml:"initialDelaySeconds"`
	Period   int `yaml:"periodSeconds"`
	Failures int `yaml:"failureThreshold"`
}

// time returns the time that a container has for its start. Missing fields have Kubernetes' defaults.
func (s *startup) time() time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(s.Delay+cmp.Or(s.Period, 10)*cmp.Or(s.Failures, 3)) * time.Second
}

type probe struct {
	HTTP struct {
		Scheme string `yaml:"scheme"`
		Host   string `yaml:"host"`
		Port   string `yaml:"port"`
		Path   string `yaml:"path"`
	} `yaml:"httpGet"`
}

// probe returns the URL that the kubelet requests. Its default host is 127.0.0.1, because static pods of the control
// plane use the host's network.
func (c container) probe() string {
	asked := c.Ready.HTTP
	if asked.Port == "" {
		asked = c.Lives.HTTP
	}
	for _, port := range c.Ports {
		if port.Name == asked.Port {
			asked.Port = port.Port
		}
	}
	if _, err := strconv.ParseUint(asked.Port, 10, 16); err != nil {
		return ""
	}
	address, err := url.Parse(asked.Path) // like the kubelet, because the path may contain a query
	if err != nil {
		address = &url.URL{Path: asked.Path}
	}
	address.Scheme, address.Host = "http", net.JoinHostPort(cmp.Or(asked.Host, "127.0.0.1"), asked.Port)
	if asked.Scheme == "HTTPS" {
		address.Scheme = "https"
	}
	return address.String()
}

// Annotated returns the manifest with an annotation set on its pod, so that the kubelet creates another pod. The layout
// may change, but no other data.
func (f File) Annotated(key, value string) ([]byte, error) {
	if _, err := f.Manifest(); err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := f.yaml(&document); err != nil || len(document.Content) != 1 {
		return nil, f.fail("it is not a manifest")
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
	content, err := encoded(&document)
	if err != nil {
		return nil, f.fail("write it with another annotation: %w", err)
	}
	return content, nil
}

func encoded(document *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(document), encoder.Close())
	return out.Bytes(), err
}

// member returns the value of a key of a mapping.
func member(of *yaml.Node, key string) (*yaml.Node, error) {
	for i := 0; of.Kind == yaml.MappingNode && i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return of.Content[i+1], nil
		}
	}
	return nil, errors.New("there is no " + key)
}

// child returns the mapping at a key of a mapping. If the key does not exist, it adds an empty mapping. If the value is
// not a mapping, it returns the value with an error.
func child(of *yaml.Node, key string) (*yaml.Node, error) {
	if of.Kind != yaml.MappingNode {
		return nil, errors.New("it is not a mapping")
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
			return value, errors.New("it is not a mapping")
		}
		return value, nil
	}
	value := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	of.Content = append(of.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	return value, nil
}
