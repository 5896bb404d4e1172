package kubeconfig

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// span is a part of the text.
type span struct{ from, to int }

// spliced returns the text with each server replaced, or nil if it cannot find the exact position of a server.
func spliced(content []byte, entries []entry, server string) []byte {
	lines := lineStarts(content)
	var spans []span
	for _, e := range entries {
		if e.from() == server {
			continue
		}
		s, known := spanOf(content, lines, e.server)
		if !known {
			return nil
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	last := 0
	for _, s := range slices.Compact(spans) {
		out.Write(content[last:s.from])
		out.WriteString(quotedLike(content[s.from], server))
		last = s.to
	}
	out.Write(content[last:])
	return out.Bytes()
}

// quotedLike returns the server in the quotes of the old server, or in the quotes that it needs.
func quotedLike(quote byte, server string) string {
	switch {
	case quote == '\'', quote == '"':
		return string(quote) + server + string(quote)
	case strings.ContainsAny(server, "[]"):
		return `"` + server + `"`
	}
	return server
}

// lineStarts returns the positions of the lines.
func lineStarts(content []byte) []int {
	starts := []int{0}
	for i, b := range content {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// spanOf returns the position of a plain or quoted text on one line.
func spanOf(content []byte, lines []int, node *yaml.Node) (span, bool) {
	if node == nil || node.Kind != yaml.ScalarNode || node.Value == "" || node.Anchor != "" || node.Line > len(lines) {
		return span{}, false
	}
	from := lines[node.Line-1]
	for range node.Column - 1 { // columns are counted in characters
		_, size := utf8.DecodeRune(content[from:])
		if size == 0 {
			return span{}, false
		}
		from += size
	}
	length := lengthOf(content[from:], node.Value)
	return span{from, from + length}, length > 0
}

// lengthOf returns the length of the value at the start of a text, with its quotes; 0 if it is not there.
func lengthOf(text []byte, value string) int {
	for _, quoted := range []string{value, `"` + value + `"`, `'` + value + `'`} {
		if bytes.HasPrefix(text, []byte(quoted)) {
			return len(quoted)
		}
	}
	return 0
}
