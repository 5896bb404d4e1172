package journal

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// InputOf returns the input of the action. T is the input type of the action's kind. Without an input, InputOf returns
// the zero value.
func InputOf[T any](request ActionRequested) (input T, err error) {
	switch in := request.Input.(type) {
	case nil:
	case json.RawMessage:
		if err := json.Unmarshal(in, &input); err != nil {
			return input, fmt.Errorf("read the input of a %s: %w", request.Kind, err)
		}
	case T:
		return in, nil
	default:
		return input, fmt.Errorf("the input of a %s is %T, want %T", request.Kind, in, input)
	}
	return input, nil
}

// UnmarshalJSON reads a request of every version. It does not need the version, because records of actions in the
// mirror and in snapshots do not have it. In version 1, the fields of the input were fields of the request itself.
func (a *ActionRequested) UnmarshalJSON(raw []byte) error {
	type plain ActionRequested
	var request struct {
		plain
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		return err
	}
	*a = ActionRequested(request.plain)
	read, version1 := version1Inputs[a.Kind]
	switch {
	case version1 && request.Input == nil:
		return a.setInput(read(raw))
	case version1:
		return a.setInput(read(request.Input))
	case request.Input != nil:
		a.Input = request.Input
	}
	return nil
}

// setInput sets the input. It stores nil instead of a zero value.
func (a *ActionRequested) setInput(input any, err error) error {
	if err != nil {
		return fmt.Errorf("read the input of a %s: %w", a.Kind, err)
	}
	if !reflect.ValueOf(input).IsZero() {
		a.Input = input
	}
	return nil
}

// version1Inputs has the functions that read inputs of version 1. Only these two kinds of action existed then.
var version1Inputs = map[ActionKind]func([]byte) (any, error){
	ActionClearNode: inputFrom[ClearInput],
	ActionPurgeNode: inputFrom[PurgeInput],
}

func inputFrom[T any](raw []byte) (any, error) {
	var input T
	err := json.Unmarshal(raw, &input)
	return input, err
}
