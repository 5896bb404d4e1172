package view

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal/words"
)

type stepLine struct{ step, text string }

// stepTexts returns the texts of the lines. Unless wide is set, steps that do the same to different objects share one
// line with their number, because clearing a node has a step for each pod.
func stepTexts(lines []stepLine, wide bool) (texts []string) {
	alike := map[string]int{}
	for _, line := range lines {
		alike[withoutObject(line)]++
	}
	for _, line := range lines {
		switch n := alike[withoutObject(line)]; {
		case wide || n == 1:
			texts = append(texts, line.text)
		case n > 1:
			texts = append(texts, fmt.Sprintf("%s (and %s like it: ekco status -o wide)", line.text, words.Count(n-1, "more step")))
			alike[withoutObject(line)] = 0 // already shown
		}
	}
	return texts
}

// withoutObject returns what the step does, without its object, such as "delete-pod".
func withoutObject(line stepLine) string {
	deed, _, _ := strings.Cut(line.step, " ")
	return deed
}
