package licence

import (
	"regexp"
	"slices"
	"strings"
)

// Unknown is the SPDX identifier for an unknown licence.
const Unknown = "NOASSERTION"

// phrases are phrases that occur in only one licence, in its text or its notice, without punctuation, quotes and
// comment signs.
var phrases = []struct{ id, phrase string }{
	{"Apache-2.0", "apache license version 2.0 january 2004"},
	{"Apache-2.0", "licensed under the apache license version 2.0"},
	{"MIT", "permission is hereby granted free of charge to any person obtaining a copy of this software and associated documentation files"},
	{"ISC", "permission to use copy modify and distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "permission to use copy modify and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"MPL-2.0", "mozilla public license version 2.0 1. definitions"},
}

const (
	bsd       = "redistribution and use in source and binary forms with or without modification"
	endorsing = "used to endorse or promote products derived from this software"
)

var noise = regexp.MustCompile(`[^a-z0-9./]+`)

// Identify returns the SPDX identifiers of the licences in a text, sorted; none if it recognises none. The text may
// also contain others.
func Identify(text string) []string {
	plain := noise.ReplaceAllString(strings.ReplaceAll(strings.ToLower(text), ",", ""), " ")
	var found []string
	for _, known := range phrases {
		if strings.Contains(plain, known.phrase) {
			found = append(found, known.id)
		}
	}
	if strings.Contains(plain, bsd) {
		if strings.Contains(plain, endorsing) {
			found = append(found, "BSD-3-Clause")
		} else {
			found = append(found, "BSD-2-Clause")
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Expression joins identifiers to an SPDX expression: all of them apply.
func Expression(ids []string) string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 {
		return Unknown
	}
	return strings.Join(ids, " AND ")
}
