// Package kurladdon tests the add-on for kURL (deploy/kurl). The functions of kURL's scripts that the add-on calls are
// in kurl.sh; installer.sh calls the hooks in kURL's order, under "set -eE" with a trap on ERR.
//
//	*.bats      each hook, with a cluster made of files and with the real ekco in place of its image (fakes/)
//	fields.tsv  each field of the installer, and the line of the configuration that it becomes
//	*_test.go   the package, and what a real API server makes of what the hooks apply
//
// Nothing is written outside of the tests' own directories: the add-on has the host's directories in variables.
package kurladdon
