// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config has the configuration of the gateway: one file, in YAML or JSON.
//
//	apiVersion: gateway.atoll.dev/v1alpha1
//	kind: GatewayConfiguration
//	serving:
//	  certificateFile: /etc/gateway/tls.crt
//	  keyFile: /etc/gateway/tls.key
//	source:
//	  central: {}
//	authentication:
//	  tokenReview:
//	    audiences: [https://gateway.example.com]
//
// # Guaranteed
//
//   - Load returns every error of the file at once. Each error is a line with the path of the field, the reason, and what
//     would be accepted. Unknown fields, and fields that are given twice, are errors.
//   - A field that is not set has the default that its comment names.
//
// # Not guaranteed
//
//   - That files that the configuration names exist: the gateway reads them when it starts.
package config
