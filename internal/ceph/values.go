package ceph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// longestAnswer is how long one answer may be, in bytes: that about a thousand OSDs
// has a thousand KiB.
const longestAnswer = 8 << 20

var errNoValues = errors.New("it wrote something that is no sequence of JSON values, each with an end of line")

// values cuts what ceph writes into JSON objects and arrays. Each ends with an end
// of line, and there is only white space between them; anything else is an error.
type values struct {
	begun    []byte
	depth    int
	quoted   bool
	escaped  bool
	complete bool
}

// between reports whether there is nothing of a value that has not been returned.
func (v *values) between() bool { return len(v.begun) == 0 }

// next takes one byte, and returns the value that ends with it, if one does.
func (v *values) next(b byte) (value []byte, err error) {
	switch {
	case v.complete:
		return v.end(b)
	case v.between() && bytes.IndexByte([]byte(" \t\r\n"), b) >= 0:
		return nil, nil
	case v.between() && b != '{' && b != '[':
		return nil, errNoValues
	case len(v.begun) >= longestAnswer:
		return nil, fmt.Errorf("an answer has more than %d KiB", longestAnswer>>10)
	}
	v.begun = append(v.begun, b)
	v.follow(b)
	return nil, nil
}

// follow notes where in the value the byte is.
func (v *values) follow(b byte) {
	switch {
	case v.escaped:
		v.escaped = false
	case v.quoted && b == '\\':
		v.escaped = true
	case b == '"':
		v.quoted = !v.quoted
	case v.quoted:
	case b == '{', b == '[':
		v.depth++
	case b == '}', b == ']':
		v.depth--
		v.complete = v.depth == 0
	}
}

// end returns the value, if the byte after it is the end of its line.
func (v *values) end(b byte) ([]byte, error) {
	value := quoteBareNumbers(v.begun)
	*v = values{}
	if b != '\n' || !json.Valid(value) {
		return nil, errNoValues
	}
	return value, nil
}

// bareNumber matches JSON strings, which are kept, and the bare words inf and nan: Ceph 18.2.0 to
// 18.2.4 writes inf into fields of pools in "ceph osd dump".
var bareNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[-+]?\b(?:inf|nan)\b`)

// quoteBareNumbers puts inf and nan in quotes. If nobody reads the field, the answer can be parsed
// then; if a number is expected there, parsing fails.
func quoteBareNumbers(answer []byte) []byte {
	if json.Valid(answer) {
		return answer
	}
	return bareNumber.ReplaceAllFunc(answer, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return slices.Concat([]byte(`"`), found, []byte(`"`))
	})
}
