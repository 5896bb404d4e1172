package sbom

// These types are the part of SPDX 2.3 that is used, with its names.

const noAssertion = "NOASSERTION"

type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []item         `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type item struct {
	Name             string        `json:"name"`
	ID               string        `json:"SPDXID"`
	Version          string        `json:"versionInfo"`
	Supplier         string        `json:"supplier,omitempty"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	Checksums        []checksum    `json:"checksums,omitempty"`
	SourceInfo       string        `json:"sourceInfo,omitempty"`
	Concluded        string        `json:"licenseConcluded"`
	Declared         string        `json:"licenseDeclared"`
	LicenceComments  string        `json:"licenseComments,omitempty"`
	Copyright        string        `json:"copyrightText"`
	Comment          string        `json:"comment,omitempty"`
	Purpose          string        `json:"primaryPackagePurpose"`
	References       []externalRef `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

func packageURL(locator string) []externalRef {
	return []externalRef{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: locator}}
}
