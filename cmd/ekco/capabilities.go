package main

import (
	"github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal/words"
)

// vocabulary returns the words for all that this EKCO can do: those of each
// capability, and the engine's own.
func vocabulary() *words.Vocabulary { return words.New(node.Words) }
