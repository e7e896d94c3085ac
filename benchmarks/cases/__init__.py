"""Six uses that people recognise, one page each under docs/cases."""
