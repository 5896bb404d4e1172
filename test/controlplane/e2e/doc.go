// Package e2e tests the controlplane program as its users see it: as a child
// process, through its command line and the API it serves.
package e2e
