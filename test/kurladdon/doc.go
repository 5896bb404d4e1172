// Package kurladdon tests the add-on for kURL (deploy/kurl). File kurl.sh has stand-ins for the functions of kURL's
// scripts that the add-on calls. installer.sh calls the hooks in kURL's order, under "set -eE" with a trap on ERR.
//
//	*.bats      tests of each hook. kubectl, ctr, docker, curl and timeout are fakes (fakes/), ekco is the real program
//	fields.tsv  each field of the installer, and the line of config.yaml that it sets
//	*_test.go   tests of the package, and of the hooks with a real API server
//
// Tests write only into their own directories: they set EKCO_HOST_ETC and EKCO_HOST_BIN, the add-on's directories on a
// host.
package kurladdon
