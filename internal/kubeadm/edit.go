package kubeadm

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Edit is the result of RemoveEndpoint.
type Edit struct {
	// Text is the new text. It equals the old text if nothing had to be changed.
	Text string
	// Removed is set if the node was listed.
	Removed bool
	// Repaired is set if the document was malformed.
	Repaired bool
}

// Changed reports whether Text must be written.
func (e Edit) Changed() bool { return e.Removed || e.Repaired }

// RemoveEndpoint removes a node from the API endpoints of a ClusterStatus, the value of ClusterStatusKey. Even if the
// node is not listed, it also repairs a document in lower case, which old EKCO versions wrote and kubeadm cannot read.
//
// It edits the text: every well-formed line about other things stays byte for byte, with comments and order. It parses
// the result and compares it before it returns. For a document that EKCO does not understand, it returns
// ErrUnknownShape and no text.
func RemoveEndpoint(clusterStatus, node string) (Edit, error) {
	before, err := parse(clusterStatus)
	if err != nil {
		return Edit{}, err
	}
	edit := Edit{Text: clusterStatus, Repaired: before.malformed()}
	text := newLines(clusterStatus)
	if edit.Repaired {
		if err := text.repair(before); err != nil {
			return Edit{}, err
		}
	}
	for _, e := range before.entries {
		if e.key.Value == node {
			edit.Removed = true
			if err := text.removeEntry(before, e); err != nil {
				return Edit{}, err
			}
		}
	}
	if !edit.Changed() {
		return edit, nil
	}
	edit.Text = text.String()
	if err := compare(before, edit.Text, node); err != nil {
		return Edit{}, err
	}
	return edit, nil
}

// compare checks that the new text equals the old text without the node.
func compare(before *status, text, node string) error {
	after, err := parse(text)
	if err != nil {
		return fmt.Errorf("read the edited text back: %w", err)
	}
	want := before.byNode()
	delete(want, node)
	switch {
	case after.malformed():
		return unknown("EKCO cannot repair it")
	case !maps.Equal(after.byNode(), want):
		return unknown("EKCO cannot remove the endpoint of %s", node)
	case before.malformed() && (after.kind == "" || after.apiVersion == ""):
		return unknown("it lacks its kind or apiVersion")
	case after.kind != before.kind || after.apiVersion != before.apiVersion || !sameValues(after.others, before.others):
		return unknown("EKCO cannot remove the endpoint of %s alone", node)
	}
	return nil
}

func sameValues(a, b map[string]*yaml.Node) bool {
	return maps.EqualFunc(a, b, func(x, y *yaml.Node) bool {
		var left, right any
		return x.Decode(&left) == nil && y.Decode(&right) == nil && reflect.DeepEqual(left, right)
	})
}

// lines is a text under edit. Lines keep their numbers.
type lines struct {
	// text holds the lines with their ends. A removed line is empty.
	text []string
}

func newLines(text string) *lines { return &lines{strings.SplitAfter(text, "\n")} }

func (l *lines) String() string { return strings.Join(l.text, "") }

// removeEntry removes a node's lines from the endpoints.
func (l *lines) removeEntry(s *status, e entry) error {
	if s.endpoints.Style&yaml.FlowStyle != 0 {
		return unknown("%s in line %d is in braces", s.endpointsKey.Value, s.endpointsKey.Line)
	}
	first, last := e.key.Line, lastLine(e.value)
	if err := l.wantBlockKey(e.key); err != nil {
		return err
	}
	if last > len(l.text) {
		return unknown("the endpoint of %s has no clear end", e.key.Value)
	}
	clear(l.text[first-1 : last])
	if len(s.entries) == 1 {
		return l.replace(s.endpointsKey, keyEndpoints+":", keyEndpoints+": {}")
	}
	return nil
}

// repair corrects the keys and moves the children of typemeta to the top level.
func (l *lines) repair(s *status) error {
	for _, m := range s.misspelt {
		if err := l.replace(m.key, m.key.Value, m.should); err != nil {
			return err
		}
	}
	if s.typeMeta == nil {
		return nil
	}
	if s.typeMeta.Style&yaml.FlowStyle != 0 || len(s.typeMeta.Content) == 0 {
		return unknown("%s in line %d is in braces", keyTypeMeta, s.typeMetaKey.Line)
	}
	if err := l.wantBlockKey(s.typeMetaKey); err != nil {
		return err
	}
	first, last := s.typeMetaKey.Line, lastLine(s.typeMeta)
	if last > len(l.text) {
		return unknown("%s in line %d has no clear end", keyTypeMeta, first)
	}
	indent := strings.Repeat(" ", max(0, s.typeMeta.Content[0].Column-s.typeMetaKey.Column))
	l.text[first-1] = ""
	for i := first; i < last; i++ {
		l.text[i] = strings.TrimPrefix(l.text[i], indent)
	}
	return nil
}

// replace replaces text at a key.
func (l *lines) replace(key *yaml.Node, old, with string) error {
	if err := l.wantBlockKey(key); err != nil {
		return err
	}
	line, at := l.text[key.Line-1], key.Column-1
	if !strings.HasPrefix(line[at:], old) {
		return unknown("line %d is not a plain key", key.Line)
	}
	l.text[key.Line-1] = line[:at] + with + line[at+len(old):]
	return nil
}

// wantBlockKey checks that the key begins its line. YAML knows more line breaks than the text is split at, so the line
// may not exist.
func (l *lines) wantBlockKey(key *yaml.Node) error {
	at := key.Column - 1
	if key.Line > len(l.text) || at > len(l.text[key.Line-1]) || strings.TrimLeft(l.text[key.Line-1][:at], " ") != "" {
		return unknown("the key in line %d is not at its start", key.Line)
	}
	return nil
}

// lastLine is the line on which the last part of a node begins.
func lastLine(node *yaml.Node) int {
	last := node.Line
	for _, child := range node.Content {
		last = max(last, lastLine(child))
	}
	return last
}
