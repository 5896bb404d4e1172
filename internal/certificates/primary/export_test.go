package primary

import "github.com/replicatedhq/ekco/internal/durable"

// Before has a rotation call that before each effect, and between the two renames of a pair.
func (of Rotation) Before(do func(effect string)) Rotation {
	of.before = do
	return of
}

// Fails has a rotation fail where it writes a file beside one for which that is an error.
func (of Rotation) Fails(with func(path string) error) Rotation {
	of.writes = func(path string, content []byte) (durable.Replacement, error) {
		if err := with(path); err != nil {
			return durable.Replacement{}, err
		}
		return durable.Prepare(path, content)
	}
	return of
}

// Changes returns a rotation that writes what change makes of each new content.
func (of Rotation) Changes(change func(path string, content []byte) []byte) Rotation {
	of.writes = func(path string, content []byte) (durable.Replacement, error) {
		return durable.Prepare(path, change(path, content))
	}
	return of
}

// Verify and Differs check a renewed certificate.
var (
	Verify  = verify
	Differs = differs
)
