package licence

import (
	"slices"
	"testing"
)

const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal …`

const twoClauses = `# Redistribution and use in source and binary forms, with or without
# modification, are permitted provided that the following conditions are met:`

func TestIdentify(t *testing.T) {
	for _, test := range []struct {
		what, text string
		want       []string
	}{
		{"MIT's text", mit, []string{"MIT"}},
		{"Apache's text", "                 Apache License\n           Version 2.0, January 2004\n", []string{"Apache-2.0"}},
		{"Apache's notice", "Licensed under the Apache License, Version 2.0 (the \"License\")", []string{"Apache-2.0"}},
		{"two clauses in comments", twoClauses, []string{"BSD-2-Clause"}},
		{"three clauses", twoClauses + "\n3. … may be used to endorse or promote\n   products derived from this software", []string{"BSD-3-Clause"}},
		{"two licences in one file", mit + twoClauses, []string{"BSD-2-Clause", "MIT"}},
		{"ISC's text", "Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted", []string{"ISC"}},
		{"a text nobody knows", "All rights reserved.", nil},
	} {
		if got := Identify(test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.what, got, test.want)
		}
	}
}

func TestExpression(t *testing.T) {
	if got := Expression([]string{"MIT", "Apache-2.0", "MIT"}); got != "Apache-2.0 AND MIT" {
		t.Errorf("got %s", got)
	}
	if got := Expression(nil); got != "NOASSERTION" {
		t.Errorf("of no licence: got %s", got)
	}
}
