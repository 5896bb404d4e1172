package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns the text with control characters, and characters that reorder or hide text, as escape sequences. An
// escape character becomes \x1b, a line break \n, and a right-to-left override \u202e.
func Clean(text string) string {
	if isPlain(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out.String()
}

func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] >= 0x7f {
			return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0
		}
	}
	return true
}

// escapeJSON escapes the control characters that JSON allows. The meaning of the JSON does not change.
func escapeJSON(content []byte) []byte {
	if isPlain(string(content)) {
		return content
	}
	out := make([]byte, 0, len(content)+16)
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		switch {
		case r < 0x7f || unicode.IsPrint(r):
			out = append(out, content[:size]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		content = content[size:]
	}
	return out
}

// cleanJSON returns decoded JSON in which [Clean] was applied to every text.
func cleanJSON(value any) any {
	switch value := value.(type) {
	case string:
		return Clean(value)
	case []any:
		for i, item := range value {
			value[i] = cleanJSON(item)
		}
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, item := range value {
			out[Clean(name)] = cleanJSON(item)
		}
		return out
	}
	return value
}
