"""ValidatingAdmissionPolicy: rules in CEL that the server itself judges by."""
