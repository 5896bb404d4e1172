package debian

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// Package is a binary package.
type Package struct {
	Name, Version, Architecture string
	// Source and SourceVersion are the package it was built from.
	Source, SourceVersion string
	// SHA256 is the checksum of the .deb file.
	SHA256 string
	// Control is its control paragraph, with a line feed at the end.
	Control string
}

// Parse reads control paragraphs, separated by empty lines. Each must have a field SHA256, which is not part of
// Control.
func Parse(paragraphs []byte) ([]Package, error) {
	var packages []Package
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(paragraphs)), "\n\n") {
		p, err := parse(paragraph)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

func parse(paragraph string) (Package, error) {
	var p Package
	lines := bufio.NewScanner(strings.NewReader(paragraph))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Architecture":
			p.Architecture = value
		case "Source":
			p.Source, p.SourceVersion = source(value)
		case "SHA256":
			p.SHA256 = value
			continue
		}
		p.Control += line + "\n"
	}
	if p.Name == "" || p.Version == "" || p.Architecture == "" || len(p.SHA256) != 64 {
		return Package{}, fmt.Errorf("control paragraph without name, version, architecture or SHA256: %q", paragraph)
	}
	if p.Source == "" {
		p.Source = p.Name
	}
	if p.SourceVersion == "" {
		p.SourceVersion = p.Version
	}
	return p, lines.Err()
}

// source splits a value such as "bash (5.2.37-2)". It has a version only if the source's version differs from the
// binary package's.
func source(value string) (name, version string) {
	name, version, _ = strings.Cut(value, " ")
	return name, strings.Trim(version, "()")
}

// Status returns a dpkg status file that lists the packages as installed. Scanners read it to find the content of an
// image.
func Status(packages []Package) []byte {
	var status bytes.Buffer
	for _, p := range packages {
		fields := strings.Replace(p.Control, "\n", "\nStatus: install ok installed\n", 1)
		status.WriteString(fields + "\n")
	}
	return status.Bytes()
}
