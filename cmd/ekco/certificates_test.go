package main

import (
	"testing"
)

func TestCertificatesAreShownAlsoWhereNoOperatorRuns(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	d.expect(d.types("certificates"), exitDone, "EKCO has seen no certificate yet\n", "")
	d.expect(d.types("certificates", "-o", "json"), exitDone, "[]\n", "")
	d.expect(d.types("certificates", "registry"), exitUsage, "", "takes no argument")
	d.expect(d.types("certificates", "-o", "wide"), exitUsage, "", "want one of table, json, yaml")
}
