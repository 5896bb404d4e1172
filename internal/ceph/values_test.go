package ceph

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// cut returns the values in what was written, and the error that ended it.
func cut(written string) (cut []string, between bool, err error) {
	var v values
	for _, b := range []byte(written) {
		value, err := v.next(b)
		if err != nil {
			return cut, false, err
		}
		if value != nil {
			cut = append(cut, string(value))
		}
	}
	return cut, v.isEmpty(), nil
}

func TestWhatCephWritesIsCutIntoItsAnswers(t *testing.T) {
	want := []string{`{"a":"}\"{\\"}`, `[{"b":[1,{}]},"]"]`, "{\"c\":\n{}\n}", `{}`}
	got, between, err := cut("\n" + strings.Join(want, "\n\n") + "\n\n")
	if err != nil || !between || !slices.Equal(got, want) {
		t.Errorf("%q, between values %v, %v", got, between, err)
	}
}

func TestWhatIsNoSequenceOfAnswersIsNotTakenForOne(t *testing.T) {
	for written, whole := range map[string]int{
		"HEALTH_OK\n": 0, "3\n": 0, `"{}"` + "\n": 0, "]\n": 0, "{}{}\n": 0, "{} \n": 0, "{}x\n": 0, "{]\n": 0, `{"a":}` + "\n": 0,
		"{}\n}\n": 1, "{}\nError EINVAL\n": 1, "{\"a\":{\"b\":1}}\n[1\x00]\n": 1,
	} {
		got, _, err := cut(written)
		if err == nil || len(got) != whole {
			t.Errorf("%q: %q, %v", written, got, err)
		}
	}
	for _, begun := range []string{"{", `{"a":"`, "{}", `{"a":"}` + "\n", "[{}\n"} {
		if got, between, err := cut(begun); len(got) > 0 || between || err != nil {
			t.Errorf("%q: %q, between values %v, %v", begun, got, between, err)
		}
	}
}

func TestAnAnswerWithoutEndIsGivenUp(t *testing.T) {
	var v values
	_, err := v.next('[')
	for i := 0; err == nil && i <= maxAnswer; i++ {
		_, err = v.next(' ')
	}
	if err == nil {
		t.Errorf("%d bytes were kept", len(v.partial))
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{"{}\n[]\n", "{\"a\":\"\\\"\"}\n\n", "{}x", "[{\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		got, between, err := cut(written)
		for _, value := range got {
			if !json.Valid([]byte(value)) {
				t.Errorf("%q is no value", value)
			}
		}
		if err != nil || !between {
			return
		}
		// Whoever reads JSON reads the same.
		decoder := json.NewDecoder(strings.NewReader(written))
		for _, value := range got {
			var raw json.RawMessage
			if err := decoder.Decode(&raw); err != nil || string(raw) != value {
				t.Fatalf("%q: a decoder reads %q, %v, where %q was cut", written, raw, err, value)
			}
		}
		if decoder.More() {
			t.Errorf("%q: a decoder reads more than %q", written, got)
		}
	})
}

func TestANumberThatJSONDoesNotHaveIsReadAsAString(t *testing.T) {
	for written, want := range map[string]string{
		`{"a":inf,"b":-inf,"c":[nan,1]}`:         `{"a":"inf","b":"-inf","c":["nan",1]}`,
		`{"inf":"nan, inf","b":"\\" , "c":inf }`: `{"inf":"nan, inf","b":"\\" , "c":"inf" }`,
		`{"info":1,"a":true}`:                    `{"info":1,"a":true}`,
	} {
		got, _, err := cut(written + "\n")
		if err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, %v; want %s", written, got, err, want)
		}
	}
	if got, _, err := cut(`{"a":info}` + "\n"); err == nil {
		t.Errorf("a word is taken for a number: %q", got)
	}
}
