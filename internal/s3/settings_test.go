package s3_test

import (
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
)

func TestTheOrderOfSetsInAPolicyMeansNothing(t *testing.T) {
	one := `{"Statement":[{"Effect":"Deny","Resource":["a","b"],"Action":["x","y"]},{"Effect":"Allow","Action":["x"]}]}`
	other := `{"Statement":[{"Effect":"Allow","Action":["x"]},{"Action":["y","x"],"Resource":["b","a"],"Effect":"Deny"}]}`
	less := `{"Statement":[{"Effect":"Deny","Resource":["a"],"Action":["x","y"]},{"Effect":"Allow","Action":["x"]}]}`
	if !s3.Policy.Same(one, other) || s3.Policy.Same(one, less) || s3.Policy.Same(one, "") || s3.Lifecycle.Same(one, other) {
		t.Error("policies are not compared by what they mean")
	}
	if s3.Policy.Mark(one) != s3.Policy.Mark(other) || s3.Policy.Mark(one) == s3.Policy.Mark(less) || s3.Lifecycle.Mark(one) == s3.Lifecycle.Mark(other) {
		t.Error("what is the same, and only that, must have the same mark")
	}
}
