package view

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Wrap returns a writer that breaks lines longer than width between words, because a terminal breaks them in the middle
// of a word. Each write must have whole lines. A width of 0 means no limit.
func Wrap(w io.Writer, width int) io.Writer {
	if width <= 0 {
		return w
	}
	return wrapper{w, width}
}

type wrapper struct {
	w     io.Writer
	width int
}

func (o wrapper) Write(content []byte) (int, error) {
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(wrapLine(line, o.width), "\n")
	}
	if _, err := io.WriteString(o.w, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(content), nil
}

var (
	// unbroken matches what stays on one line: a command that a person may copy, or a word.
	unbroken = regexp.MustCompile(` *[("]?(kubectl .*|ekco \S+( [^ (]\S*)? *|\S+ *)`)
	oneWord  = regexp.MustCompile(` *\S+ *`)
	colors   = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

func visibleWidth(text string) int { return utf8.RuneCountInString(colors.ReplaceAllString(text, "")) }

// wrapLine breaks one line. The lines after the first are indented further than the first. A command that is too long
// for one line continues after a backslash, so that a shell takes it as one.
func wrapLine(line string, width int) (lines []string) {
	if visibleWidth(line) <= width {
		return []string{line}
	}
	indent := strings.Repeat(" ", min(len(line)-len(strings.TrimLeft(line, " ")), width/4)+4)
	current := ""
	for _, piece := range unbroken.FindAllString(line, -1) {
		parts, room := []string{piece}, width
		if visibleWidth(indent+strings.TrimSpace(piece)) > width {
			parts, room = oneWord.FindAllString(piece, -1), width-len(` \`)
		}
		for i, part := range parts {
			begins := i == 0 && len(parts) > 1
			if strings.TrimSpace(current) != "" && (begins || visibleWidth(current+strings.TrimRight(part, " ")) > room) {
				if current = strings.TrimRight(current, " "); i > 0 {
					current += ` \`
				}
				lines = append(lines, current)
				current, part = indent, strings.TrimLeft(part, " ")
			}
			current += part
		}
	}
	return append(lines, strings.TrimRight(current, " "))
}
