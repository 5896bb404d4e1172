package main

import "strings"

// helpWidth is the longest line of help, in characters.
const helpWidth = 80

func wrapHelp(paragraph string) string {
	var text strings.Builder
	room := 0
	for _, word := range strings.Fields(paragraph) {
		switch {
		case text.Len() == 0:
			room = helpWidth
		case len(word) < room:
			text.WriteByte(' ')
			room--
		default:
			text.WriteByte('\n')
			room = helpWidth
		}
		text.WriteString(word)
		room -= len(word)
	}
	return text.String()
}

// inWords returns "a, b and c".
func inWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
