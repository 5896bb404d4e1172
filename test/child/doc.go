// Package child runs programs as children of a test or benchmark. Each child is stopped by its pid when the test ends,
// and by the kernel when the test is killed. Its output is kept, and logged if the test fails.
package child
