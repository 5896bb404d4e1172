package child

import "os"

// Output is the output of a process. It can be read while the process writes.
type Output struct{ path string }

// String returns the whole output, or an error text if it cannot be read.
func (o Output) String() string {
	content, err := os.ReadFile(o.path)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// Tail returns the last n bytes at most.
func (o Output) Tail(n int) string {
	all := o.String()
	return all[max(0, len(all)-n):]
}
