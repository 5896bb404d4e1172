package rescue

// BranchPage are the flags of a page that leads to others.
const BranchPage = branchPage

// Finding and Rebuild are for tests that open what they examine: a store imports this package.
var (
	Finding = isFinding
	Rebuild = rebuild
)

// Rebuilder is what [Rebuild] is fed by.
type Rebuilder = rebuilder

// Record adds a record, and reports whether it fits.
func (r *Rebuilder) Record(content []byte) (bool, error) { return r.record(content) }
