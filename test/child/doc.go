// Package child runs programs as children of a test or benchmark: each is
// ended by its own pid when the test ends, and by the kernel when the test is
// killed. What it wrote is kept, and shown when the test fails.
package child
