# cmake -DOUTPUT=file -DSCRIPT=file -DHEADER=header -DNAME=name -P EmbedScript.cmake: a text as the C++ string that the header declares as `name`
# in fovea::bench.
file(READ ${SCRIPT} text)
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n\nnamespace fovea::bench {\n\nconst char* const ${NAME} = R\"fovea_text(${text})fovea_text\";\n\n}  // namespace fovea::bench\n")
