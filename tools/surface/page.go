// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// readReasons reads lines of the form "package.Name: reason".
func readReasons(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("%s: %q is not of the form \"package.Name: reason\"", path, line)
		}
		reasons[name] = reason
	}
	return reasons, nil
}

// verdict returns an error that names the identifiers without user and reason, and the reasons
// in written that no identifier needs.
func verdict(entries []entry, written map[string]string) error {
	unused := maps.Clone(written)
	var errs []error
	for _, e := range entries {
		if len(e.users) == 0 {
			delete(unused, e.id.String())
		}
		if len(e.users) == 0 && e.reason == "" {
			errs = append(errs, fmt.Errorf("%s has no user outside its package: unexport it, or write the reason to surface/reasons.txt", e.id))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, fmt.Errorf("surface/reasons.txt: %s has users, or is not exported: remove the line", name))
	}
	return errors.Join(errs...)
}

// page returns the list as a page.
func page(entries []entry) string {
	var s strings.Builder
	s.WriteString(`# Exported identifiers

For engineers who add, remove or rename an exported identifier. After this page you know who uses it.

` + "`make surface`" + ` writes this page. It fails if an identifier has neither a user in code outside its package nor a reason. Methods of types count as identifiers; fields of structs and methods of interfaces do not. Users are the packages of this repository: other packages of the library, programs and examples. "implements", "value of" and "part of" are found by the types. Other reasons are in ` + "`tools/surface/reasons.txt`" + `.

`)
	used := 0
	for _, e := range entries {
		if len(e.users) > 0 {
			used++
		}
	}
	fmt.Fprintf(&s, "%d identifiers. %d of them have users in code outside their package.\n", len(entries), used)
	pkg := ""
	for _, e := range entries {
		if e.id.pkg != pkg {
			pkg = e.id.pkg
			fmt.Fprintf(&s, "\n## %s\n\n| identifier | users | reason |\n|---|---|---|\n", pkg)
		}
		fmt.Fprintf(&s, "| %s | %s | %s |\n", e.id.name, strings.Join(e.users, ", "), e.reason)
	}
	return s.String()
}
