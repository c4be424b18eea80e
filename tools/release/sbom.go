// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom returns the modules in a program, and the standard library, as CycloneDX in JSON.
func sbom(p *program, at time.Time) ([]byte, error) {
	sum := sha256.Sum256(p.data)
	bom := cyclonedx.NewBOM()
	// The program's hash takes the place of a random number, so that the same program has the same SBOM.
	id := sum
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	main, err := component(&p.info.Main)
	if err != nil {
		return nil, err
	}
	main.Type = cyclonedx.ComponentTypeApplication
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	main.Properties = &[]cyclonedx.Property{{Name: "atoll:platform", Value: p.goos + "/" + p.goarch}}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &main}

	std := "pkg:golang/std@" + strings.TrimPrefix(p.info.GoVersion, "go")
	components := []cyclonedx.Component{{BOMRef: std, PackageURL: std, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: p.info.GoVersion}}
	for _, d := range p.info.Deps {
		c, err := component(d)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	bom.Components = &components
	var b bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return b.Bytes(), err
}

// component returns a module as part of an SBOM. Its hash is that of go.sum, in hexadecimal digits.
func component(m *debug.Module) (cyclonedx.Component, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return cyclonedx.Component{}, fmt.Errorf("module %s %s: %q is not a hash: %w", m.Path, m.Version, m.Sum, err)
	}
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	return cyclonedx.Component{
		BOMRef: url, PackageURL: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cyclonedx.ScopeRequired,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
	}, nil
}
