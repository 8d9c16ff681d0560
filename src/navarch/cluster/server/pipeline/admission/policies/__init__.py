"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: CEL that the server itself judges and changes objects by."""
